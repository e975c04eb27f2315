import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.Base64;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;

/**
 * A server that prints `ready PORT` and then a line for each write: METHOD PATH TYPE FORMAT PAYLOAD. Arguments: none, or IDENTITY KEY for DTLS.
 *
 * <p>Resources:
 *
 * <pre>
 * sink       accepts POST and PUT
 * slow       the same, with a separate response; prints `acknowledged` when the client has acknowledged it
 * forbidden  rejects POST and PUT with 4.03
 * broken     rejects POST and PUT with 5.00
 * confirmed  state that can be observed, with confirmable notifications
 * hinted     the same, with non-confirmable ones
 * </pre>
 *
 * <p>A line of the input sets a state: PATH FORMAT PAYLOAD.
 */
public final class Server {
    /** Delay of a separate response in milliseconds. */
    private static final long DELAY_MS = 500;

    private static final ScheduledExecutorService LATER = Executors.newSingleThreadScheduledExecutor();

    private Server() {}

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = Common.configuration();
        InetSocketAddress any = new InetSocketAddress("127.0.0.1", 0);
        CoapEndpoint endpoint = arguments.length == 2
            ? Common.dtls(configuration, any, arguments[0], arguments[1])
            : Common.udp(configuration, any);
        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(endpoint);
        server.add(new Sink("sink"), new Slow("slow"));
        server.add(new Refusing("forbidden", ResponseCode.FORBIDDEN));
        server.add(new Refusing("broken", ResponseCode.INTERNAL_SERVER_ERROR));
        State confirmed = new State("confirmed", Type.CON);
        State hinted = new State("hinted", Type.NON);
        server.add(confirmed, hinted);
        server.start();
        System.out.println("ready " + endpoint.getAddress().getPort());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            State state = words[0].equals("confirmed") ? confirmed : hinted;
            state.set(Integer.parseInt(words[1]), Base64.getDecoder().decode(words[2]));
        }
        System.exit(0);
    }

    /** A resource that prints what is written. */
    private static class Sink extends CoapResource {
        Sink(String name) {
            super(name);
        }

        @Override
        public void handlePOST(CoapExchange exchange) {
            write(exchange);
        }

        @Override
        public void handlePUT(CoapExchange exchange) {
            write(exchange);
        }

        private void write(CoapExchange exchange) {
            String text = Common.text(exchange.advanced().getRequest());
            System.out.println(exchange.getRequestCode() + " " + getName() + " " + text);
            respond(exchange);
        }

        void respond(CoapExchange exchange) {
            exchange.respond(ResponseCode.CHANGED);
        }
    }

    /** A resource that acknowledges a request and responds later. */
    private static final class Slow extends Sink {
        Slow(String name) {
            super(name);
        }

        @Override
        void respond(CoapExchange exchange) {
            exchange.accept();
            LATER.schedule(() -> exchange.respond(observed()), DELAY_MS, TimeUnit.MILLISECONDS);
        }

        private static Response observed() {
            Response response = new Response(ResponseCode.CHANGED);
            response.addMessageObserver(new MessageObserverAdapter() {
                @Override
                public void onAcknowledgement() {
                    System.out.println("acknowledged");
                }
            });
            return response;
        }
    }

    /** A resource that rejects writes. */
    private static final class Refusing extends Sink {
        private final ResponseCode code;

        Refusing(String name, ResponseCode code) {
            super(name);
            this.code = code;
        }

        @Override
        void respond(CoapExchange exchange) {
            exchange.respond(code, "this resource rejects all writes");
        }
    }

    /** A state that clients read and observe. */
    private static final class State extends CoapResource {
        private int format;
        private byte[] payload;

        State(String name, Type notifications) {
            super(name);
            setObservable(true);
            setObserveType(notifications);
        }

        void set(int format, byte[] payload) {
            synchronized (this) {
                this.format = format;
                this.payload = payload;
            }
            changed();
        }

        @Override
        public synchronized void handleGET(CoapExchange exchange) {
            if (payload == null) {
                exchange.respond(ResponseCode.NOT_FOUND);
            } else {
                exchange.respond(ResponseCode.CONTENT, payload, format);
            }
        }
    }
}
