// Google's own Pub/Sub fake as a program: in memory, on loopback, for the tests.
package main

import (
	"fmt"
	"os"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	// Port 0: the system chooses a free one, so that no two servers can be given the same.
	server := pstest.NewServerWithPort(0)
	defer server.Close()
	if _, err := fmt.Printf("listening on %s\n", server.Addr); err != nil {
		os.Exit(1)
	}
	select {}
}
