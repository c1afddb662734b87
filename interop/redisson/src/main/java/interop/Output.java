package interop;

import java.io.PrintStream;

/** Lines of output. Threads write whole lines only. */
final class Output {
    private final PrintStream out;

    Output(PrintStream out) {
        this.out = out;
    }

    void ready(String version) {
        line("ready " + version);
    }

    void result(String id, Object value) {
        line("= " + id + ' ' + Notation.print(value));
    }

    void failure(String id, Throwable failure) {
        line("! " + id + ' ' + describe(failure));
    }

    void received(String id, Object value, long nanos) {
        line("* " + id + ' ' + Notation.print(value) + ' ' + nanos);
    }

    void notReceived(String id, Throwable failure, long nanos) {
        line("? " + id + ' ' + describe(failure) + ' ' + nanos);
    }

    /** Names the whole chain: Redisson puts the reason into the cause. */
    private static String describe(Throwable failure) {
        StringBuilder message = new StringBuilder(String.valueOf(failure.getMessage()));
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            message.append("; ").append(cause);
        }
        return Notation.print(failure.getClass().getName()) + ' ' + Notation.print(message);
    }

    private synchronized void line(String text) {
        out.print(text + '\n');
        out.flush();
    }
}
