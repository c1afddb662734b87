package interop;

/** The operations of a request. */
interface Operation {
    Object run(Request request) throws Exception;
}
