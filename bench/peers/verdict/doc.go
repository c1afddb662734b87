// Package verdict runs delayq's conformance suite over other queues. Each has an adapter, as thin as
// it can be, over its own client: it repairs nothing and makes nothing worse. The page docs/peers.md
// is made of what the suite finds:
//
//	cd bench/peers && go test ./verdict -run TestVerdicts -update -timeout 30m
//
// It runs in real time, since other queues know no other, on servers that the tests start.
package verdict
