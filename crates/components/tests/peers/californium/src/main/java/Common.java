import java.net.InetSocketAddress;
import java.util.Base64;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.Connector;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/** Settings, endpoints and texts that the client and the server share. */
final class Common {
    /** Longest payload in octets. The default of Californium is 8 KiB. */
    private static final int PAYLOAD_OCTETS_MAX = 1 << 20;

    private Common() {}

    static Configuration configuration() {
        CoapConfig.register();
        UdpConfig.register();
        TcpConfig.register();
        DtlsConfig.register();
        return Configuration.createStandardWithoutFile().set(CoapConfig.MAX_RESOURCE_BODY_SIZE, PAYLOAD_OCTETS_MAX);
    }

    /** Returns an endpoint for UDP. Port 0 selects a free port. */
    static CoapEndpoint udp(Configuration configuration, InetSocketAddress address) {
        return CoapEndpoint.builder().setConfiguration(configuration).setInetSocketAddress(address).build();
    }

    /** Returns an endpoint for DTLS with a pre-shared key. */
    static CoapEndpoint dtls(Configuration configuration, InetSocketAddress address, String identity, String key) {
        DtlsConnectorConfig settings = DtlsConnectorConfig.builder(configuration)
            .setAddress(address)
            .setAdvancedPskStore(new AdvancedSinglePskStore(identity, key.getBytes()))
            .build();
        return over(configuration, new DTLSConnector(settings));
    }

    static CoapEndpoint over(Configuration configuration, Connector connector) {
        return CoapEndpoint.builder().setConfiguration(configuration).setConnector(connector).build();
    }

    /** Returns a message as text: TYPE FORMAT PAYLOAD, the payload in Base64. TYPE is `-` over TCP, FORMAT is -1 if it is absent. */
    static String text(Message message) {
        String type = message.getType() == null ? "-" : message.getType().toString();
        byte[] payload = message.getPayload() == null ? new byte[0] : message.getPayload();
        return type + " " + message.getOptions().getContentFormat() + " " + Base64.getEncoder().encodeToString(payload);
    }
}
