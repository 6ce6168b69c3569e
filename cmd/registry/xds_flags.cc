#include "cmd/registry/xds_flags.h"

#include <CLI/CLI.hpp>

#include "cmd/listen_address.h"
#include "cmd/programs.h"
#include "cmd/registry/scope_flags.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr const char* kFooter =
    R"(Serves the aggregated discovery service of xDS v3, state of the world and incremental.

For a gRPC client, set $GRPC_XDS_BOOTSTRAP to the name of a file such as this, and use the target
xds:///NAME:
  {"xds_servers": [{"server_uri": "127.0.0.1:18000", "channel_creds": [{"type": "insecure"}],
                    "server_features": ["xds_v3"]}],
   "node": {"id": "shop/cart"}}

With this configuration, Envoy gets a cluster for each service; your routes name the clusters. Use
DELTA_GRPC for the incremental protocol:
  node: {id: edge, cluster: edge}
  dynamic_resources:
    ads_config:
      api_type: GRPC
      transport_api_version: V3
      grpc_services: [{envoy_grpc: {cluster_name: lookout}}]
    cds_config: {ads: {}, resource_api_version: V3}
  static_resources:
    clusters:
    - name: lookout
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
      load_assignment:
        cluster_name: lookout
        endpoints:
        - lb_endpoints:
          - endpoint:
              address: {socket_address: {address: 127.0.0.1, port_value: 18000}}

Examples:
  lookout registry xds -n shop
  lookout registry xds -A --style dubbo --scheme tri
  lookout registry xds -A --listen 127.0.0.1:0)";

}  // namespace

void add_xds(CLI::App& group, const std::shared_ptr<Flags>& flags, std::function<void()> chosen) {
  CLI::App* xds = group.add_subcommand("xds", kXds.description);
  add_scope(*xds, *flags);
  xds->add_option("--listen", flags->xds_listen,
                  "The address to listen on; port 0: any free port. There is no TLS and there are\n"
                  "no passwords: anybody who can reach the address can read the services")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  xds->add_option(
         "--scheme", flags->schemes,
         "Serve endpoints of this scheme; can be repeated: the first scheme that a ready instance\n"
         "of a service has is used; default: grpc, http, tri, dubbo, tcp")
      ->type_name("SCHEME");
  xds->footer(kFooter);
  xds->callback([flags, chosen] {
    check_scope(*flags);
    parse_listen_address(flags->xds_listen);
    chosen();
  });
}

}  // namespace lookout::cmd::registry_cmd
