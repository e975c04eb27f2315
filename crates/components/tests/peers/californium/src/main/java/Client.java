import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.WebLink;
import org.eclipse.californium.core.coap.CoAP;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.network.Endpoint;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.tcp.netty.TcpClientConnector;

/**
 * A client that obeys the lines of its input and prints the results. Arguments: none, or IDENTITY KEY for DTLS.
 *
 * <pre>
 * get URI TYPE                  CODE TYPE FORMAT PAYLOAD, or `none` if there is no response
 * post URI TYPE FORMAT PAYLOAD  the same; also put
 * observe URI                   `notification CODE TYPE FORMAT PAYLOAD` for the first and each further state
 * cancel                        nothing; ends the observation
 * discover URI                  `link URI INTERFACE FORMAT OBSERVABLE` for each link, then `end`
 * ping URI                      `pong` or `none`
 * </pre>
 */
public final class Client {
    /** Time limit of a request in milliseconds. */
    private static final long REQUEST_TIME_MAX_MS = 60_000;

    private final Map<String, Endpoint> endpoints = new HashMap<>();
    private CoapObserveRelation observation;

    private Client(String[] arguments) throws Exception {
        Configuration configuration = Common.configuration();
        InetSocketAddress any = new InetSocketAddress("127.0.0.1", 0);
        endpoints.put(CoAP.COAP_URI_SCHEME, Common.udp(configuration, any));
        endpoints.put(CoAP.COAP_TCP_URI_SCHEME, Common.over(configuration, new Greeting(configuration)));
        if (arguments.length == 2) {
            endpoints.put(CoAP.COAP_SECURE_URI_SCHEME, Common.dtls(configuration, any, arguments[0], arguments[1]));
        }
        for (Endpoint endpoint : endpoints.values()) {
            endpoint.start();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client(arguments);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            client.run(line.split(" ", -1));
        }
        System.exit(0);
    }

    private void run(String[] words) throws Exception {
        switch (words[0]) {
            case "observe" -> observation = at(words[1]).observe(observe(words[1]), new Printer());
            case "cancel" -> observation.proactiveCancel();
            case "discover" -> discover(words[1]);
            case "ping" -> System.out.println(at(words[1]).ping(REQUEST_TIME_MAX_MS) ? "pong" : "none");
            default -> {
                Request request = request(words[0], words[1], words[2]);
                if (words.length == 5) {
                    request.getOptions().setContentFormat(Integer.parseInt(words[3]));
                    request.setPayload(Base64.getDecoder().decode(words[4]));
                }
                CoapResponse response = at(words[1]).advanced(request);
                System.out.println(response == null ? "none" : text(response));
            }
        }
    }

    private CoapClient at(String uri) {
        String scheme = uri.substring(0, uri.indexOf(':'));
        return new CoapClient(uri).setEndpoint(endpoints.get(scheme)).setTimeout(REQUEST_TIME_MAX_MS);
    }

    private static Request request(String method, String uri, String type) {
        Request request = new Request(CoAP.Code.valueOf(method.toUpperCase()), CoAP.Type.valueOf(type.toUpperCase()));
        request.setURI(uri);
        return request;
    }

    private static Request observe(String uri) {
        return request("get", uri, "con").setObserve();
    }

    private void discover(String uri) throws Exception {
        for (WebLink link : new TreeSet<>(at(uri).discover())) {
            String observable = link.getAttributes().hasObservable() ? "obs" : "-";
            String interfaces = String.join(",", link.getAttributes().getInterfaceDescriptions());
            String formats = String.join(",", link.getAttributes().getContentTypes());
            System.out.println("link " + link.getURI() + " " + interfaces + " " + formats + " " + observable);
        }
        System.out.println("end");
    }

    private static String text(CoapResponse response) {
        return response.getCode() + " " + Common.text(response.advanced());
    }

    /** A connector that sends a CSM first (RFC 8323, 5.3), because Californium sends none. It ignores that of the server. */
    private static final class Greeting extends TcpClientConnector {
        /** A length of 1, no token, code 7.01, the option Block-Wise-Transfer. */
        private static final byte[] CSM = {0x10, (byte) 0xe1, 0x40};

        Greeting(Configuration configuration) {
            super(configuration);
        }

        @Override
        protected void onNewChannelCreated(SocketAddress server, Channel channel) {
            channel.pipeline().addFirst(new ChannelInboundHandlerAdapter() {
                @Override
                public void channelActive(ChannelHandlerContext context) {
                    context.writeAndFlush(Unpooled.wrappedBuffer(CSM));
                    context.fireChannelActive();
                }
            });
        }
    }

    /** Prints notifications. */
    private static final class Printer implements CoapHandler {
        @Override
        public void onLoad(CoapResponse response) {
            System.out.println("notification " + text(response));
        }

        @Override
        public void onError() {
            System.out.println("notification none");
        }
    }
}
