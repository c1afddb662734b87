package interop;

/** A line of input: the id of the request, the operation and its arguments, with blanks between. */
final class Request {
    final String id;
    final String operation;
    private final String[] words;

    Request(String line) {
        words = line.split(" ");
        id = words[0];
        operation = words[1];
    }

    /** The first three arguments of every operation on a queue. */
    QueueName queue() {
        return new QueueName((String) argument(0), (String) argument(1), (String) argument(2));
    }

    /** The arguments after the queue's. */
    Object value(int i) {
        return argument(3 + i);
    }

    long number(int i) {
        return (Long) value(i);
    }

    String text(int i) {
        return (String) value(i);
    }

    Object argument(int i) {
        return Notation.parse(words[2 + i]);
    }
}
