import java.net.InetSocketAddress;
import org.eclipse.jetty.server.NetworkConnector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.ContextHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;

/** DynamoDB Local, in memory, one database for all callers, on loopback alone: its own main listens everywhere. */
public final class LoopbackDynamoDb {
    private LoopbackDynamoDb() {}

    public static void main(String[] arguments) throws Exception {
        var requests = new LocalDynamoDBRequestHandler(0, true, null, true, false);
        // Port 0: the system chooses a free one, so that no two servers can be given the same.
        var server = new Server(new InetSocketAddress("127.0.0.1", 0));
        server.setHandler(new ContextHandler(new LocalDynamoDBServerHandler(requests, null)));
        server.start();
        var port = ((NetworkConnector) server.getConnectors()[0]).getLocalPort();
        System.out.println("listening on 127.0.0.1:" + port);
        server.join();
    }
}
