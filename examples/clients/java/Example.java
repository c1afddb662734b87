import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Pushes three messages, and handles them: one fails at first. Arguments: server and queue. */
public final class Example {
    public static void main(String[] args) throws Exception {
        Delayq queue = new Delayq(args[0], args[1], null);
        queue.push("text", "a \"text\"\n".getBytes(StandardCharsets.UTF_8), Duration.ZERO);
        queue.push("bytes", new byte[] {(byte) 0xff, 0}, Duration.ofMillis(500));
        queue.push("cancelled", new byte[0], Duration.ofHours(1));
        queue.cancel("cancelled");
        try {
            queue.push("bytes", new byte[0], Duration.ZERO);
        } catch (Delayq.Problem p) {
            System.out.println("push: " + p.code);
        }
        for (int done = 0; done < 2;) {
            for (Delayq.Message m : queue.receive(10, Duration.ofSeconds(20), Duration.ofSeconds(30))) {
                if (m.id().equals("text") && m.attempt() == 1) {
                    queue.nack(m, Duration.ofMillis(500));
                    continue;
                }
                System.out.println(m.id() + " of " + m.body().length + " bytes, attempt " + m.attempt());
                queue.ack(m);
                done++;
            }
        }
    }
}
