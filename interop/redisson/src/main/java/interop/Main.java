package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import org.redisson.Redisson;

/**
 * Real Redisson behind a line protocol: requests on standard input, replies and events on standard
 * output, logs on standard error. Requests run concurrently. The process ends with its input.
 *
 * <pre>
 * 17 offer s0071 s006b s s0068 l1000     the request 17: operation and arguments, see Notation
 * = 17 n                                 its result, or
 * ! 17 s... s...                         class and message of the exception
 * * 18 s0068 1700000000000000000         the consumer of request 18 received a value, at nanoseconds since 1970, or
 * ? 18 s... s... 1700000000000000000     an exception
 * </pre>
 */
public final class Main {
    private final Output output;
    private final Operations operations;
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private Main(Clients clients, Output output) {
        this.output = output;
        this.operations = new Operations(clients, output);
    }

    public static void main(String[] args) throws Exception {
        boolean cluster = args.length == 2 && args[0].equals("--cluster");
        if (args.length != 1 && !cluster) {
            System.err.println("usage: interop.Main [--cluster] host:port");
            System.exit(2);
        }
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        System.setOut(System.err); // printing must not disturb the protocol
        Clients clients = connect(args[args.length - 1], cluster);
        Output output = new Output(out);
        output.ready(Redisson.class.getPackage().getImplementationVersion());
        new Main(clients, output).serve();
        Runtime.getRuntime().halt(0); // without closing connections to Redis
    }

    private static Clients connect(String address, boolean cluster) throws ReflectiveOperationException {
        Clients clients = new Clients(address, cluster);
        try {
            clients.get("");
        } catch (RuntimeException e) {
            System.err.println("cannot connect to " + address + ": " + e);
            Runtime.getRuntime().halt(1); // the client's threads may run
        }
        return clients;
    }

    private void serve() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String text = line;
            threads.execute(() -> answer(text));
        }
    }

    private void answer(String line) {
        Request request = new Request(line);
        try {
            output.result(request.id, operations.run(request));
        } catch (Exception | LinkageError e) {
            output.failure(request.id, e);
        }
    }
}
