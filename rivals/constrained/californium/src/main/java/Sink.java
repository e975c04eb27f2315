import java.net.InetSocketAddress;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** Accepts POSTs on one path, and prints a line when it is ready. Arguments: ADDRESS PORT PATH. */
public final class Sink {
    private static final String VERSION = "3.14.0";

    public static void main(String[] arguments) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        CoapServer server = new CoapServer(Configuration.createStandardWithoutFile());
        InetSocketAddress address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        server.addEndpoint(CoapEndpoint.builder().setInetSocketAddress(address).build());
        server.add(new CoapResource(arguments[2]) {
            @Override
            public void handlePOST(CoapExchange exchange) {
                exchange.respond(ResponseCode.CHANGED);
            }
        });
        server.start();
        System.out.println("{\"version\":\"" + VERSION + "\"}");
        // The bench closes the input.
        while (System.in.read() >= 0) {}
        server.destroy();
    }
}
