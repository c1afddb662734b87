# The command line in an image of its own: docker build -t delayq . && docker run --rm delayq demo
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd/delayq/go.mod cmd/delayq/go.sum cmd/delayq/go.work cmd/delayq/
RUN go -C cmd/delayq mod download
COPY . .
RUN CGO_ENABLED=0 go -C cmd/delayq build -trimpath -ldflags="-s -w" -o /out/delayq .
RUN mkdir -p /out/data

# No shell, no libraries: the program, and the certificates that verify a store's TLS.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/delayq /usr/local/bin/delayq
# For the file of delayq serve. A new volume that is mounted here has this owner.
COPY --from=build --chown=65532:65532 /out/data /data
WORKDIR /data
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/delayq"]
