import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A client of "delayq serve", with the JDK alone. The JDK reads no JSON: fields are found by a
 * pattern here. A service has a library for that, such as Jackson.
 */
public final class Delayq {

    /** An error of the server. Its code says which: "not-found", "lease-lost", "duplicate". */
    public static final class Problem extends IOException {
        public final String code;

        Problem(String json) {
            super(text(json, "detail"));
            code = text(json, "code");
        }
    }

    /** A message that was received. */
    public record Message(String id, byte[] body, int attempt, String lease) {}

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String base;
    private final String token;

    public Delayq(String server, String queue, String token) {
        this.base = server + "/v1/queues/" + URLEncoder.encode(queue, StandardCharsets.UTF_8) + "/";
        this.token = token;
    }

    /** Stores a message that is due after a delay. */
    public void push(String id, byte[] body, Duration after) throws IOException, InterruptedException {
        post("messages", "{\"id\": %s, \"body_base64\": \"%s\", \"after\": %s}".formatted(
            quoted(id), Base64.getEncoder().encodeToString(body), seconds(after)));
    }

    /** Waits for messages that are due. The list is empty when the time to wait is over. */
    public List<Message> receive(int limit, Duration wait, Duration lease) throws IOException, InterruptedException {
        String reply = post("receive", "{\"limit\": %d, \"wait\": %s, \"lease_for\": %s}".formatted(
            limit, seconds(wait), seconds(lease)));
        List<Message> messages = new ArrayList<>();
        for (String m : OBJECT.matcher(reply).replaceAll("").split("(?=\\{\"id\":)")) {
            String id = text(m, "id");
            if (id == null) {
                continue;
            }
            String bytes = text(m, "body_base64");
            String body = text(m, "body");
            messages.add(new Message(id,
                bytes != null ? Base64.getDecoder().decode(bytes) : body == null ? new byte[0] : body.getBytes(StandardCharsets.UTF_8),
                Integer.parseInt(find(m, "\"attempt\":(\\d+)")), text(m, "lease")));
        }
        return messages;
    }

    public void ack(Message m) throws IOException, InterruptedException {
        post("ack", "{\"leases\": [\"" + m.lease + "\"]}");
    }

    public void nack(Message m, Duration after) throws IOException, InterruptedException {
        post("nack", "{\"messages\": [{\"lease\": \"%s\", \"after\": %s}]}".formatted(m.lease, seconds(after)));
    }

    public void cancel(String id) throws IOException, InterruptedException {
        post("cancel", "{\"ids\": [" + quoted(id) + "]}");
    }

    private String post(String verb, String json) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + verb))
            .timeout(Duration.ofSeconds(90))
            .header("Content-Type", "application/json")
            // A request that is sent again with the same key is not executed again.
            .header("Idempotency-Key", UUID.randomUUID().toString())
            .POST(HttpRequest.BodyPublishers.ofString(json));
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        for (int tries = 1; ; tries++) {
            try {
                HttpResponse<String> reply = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
                if (reply.statusCode() / 100 == 2) {
                    return reply.body();
                }
                throw new Problem(reply.body());
            } catch (Problem p) {
                if (tries == 5 || !"unavailable".equals(p.code) && !"too-many-requests".equals(p.code)) {
                    throw p;
                }
            } catch (IOException e) { // the reply may be lost
                if (tries == 5) {
                    throw e;
                }
            }
            Thread.sleep(100L << tries);
        }
    }

    private static String seconds(Duration d) {
        return d.toMillis() / 1000 + "." + "%03d".formatted(d.toMillis() % 1000);
    }

    private static String quoted(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ') {
                b.append("\\u%04x".formatted((int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }

    // Inside of a string, possessive: a group that goes back needs stack for each character.
    private static final String CHARS = "[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+";

    /** Headers and limits, whose fields have names that a field of the message may have, too. */
    private static final Pattern OBJECT = Pattern.compile(
        "\"(?:headers|headers_base64|limits)\":\\{(?:\"" + CHARS + "\"|[^\"}])*+\\},?");

    private static String find(String json, String pattern) {
        Matcher m = Pattern.compile(pattern).matcher(json);
        return m.find() ? m.group(1) : null;
    }

    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");

    /** The text of a field. */
    private static String text(String json, String field) {
        String raw = find(json, "\"" + field + "\":\"(" + CHARS + ")\"");
        if (raw == null) {
            return null;
        }
        return ESCAPE.matcher(raw).replaceAll(m -> Matcher.quoteReplacement(
            m.group(1) != null ? String.valueOf((char) Integer.parseInt(m.group(1), 16)) : switch (m.group(2)) {
                case "n" -> "\n";
                case "t" -> "\t";
                case "r" -> "\r";
                case "b" -> "\b";
                case "f" -> "\f";
                default -> m.group(2);
            }));
    }
}
