package interop;

/** What a request can ask for. */
interface Operation {
    Object run(Request request) throws Exception;
}
