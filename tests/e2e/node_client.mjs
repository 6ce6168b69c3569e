// The informer of @kubernetes/client-node against an API server.
//
// usage: node node_client.mjs KUBECONFIG
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.LOOKOUT_NODE_CLIENT}/`);
const k8s = await import(pathToFileURL(require.resolve('@kubernetes/client-node')));

const PATIENCE_MS = 30000;
setTimeout(() => {
  console.error('nothing happens any more');
  process.exit(1);
}, PATIENCE_MS).unref();

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
// It speaks plain HTTP only to those whose certificate it would not look at.
config.clusters = config.clusters.map((cluster) => ({ ...cluster, skipTLSVerify: true }));
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';

// The events of the informer, and the code that waits for them.
const told = [];
let waiting = null;
const expectNext = async (...expected) => {
  while (told.length < expected.length) await new Promise((resolve) => (waiting = resolve));
  const got = told.splice(0, expected.length);
  if (JSON.stringify(got) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`);
  }
};

await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' } } });
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () =>
  core.listNamespacedConfigMap({ namespace }),
);
for (const event of ['add', 'update', 'delete']) {
  informer.on(event, (object) => {
    told.push(`${event} ${object.metadata.name}`);
    if (waiting) waiting();
  });
}
let stopping = false;
informer.on('error', (error) => {
  // Its own way to end a watch is an error to it.
  if (stopping) return;
  console.error(error);
  process.exit(1);
});
await informer.start();
await expectNext('add a');
const b = await core.createNamespacedConfigMap({
  namespace,
  body: { metadata: { name: 'b' }, data: { key: '1' } },
});
await expectNext('add b');
b.data.key = '2';
await core.replaceNamespacedConfigMap({ name: 'b', namespace, body: b });
await expectNext('update b');
await core.deleteNamespacedConfigMap({ name: 'a', namespace });
await expectNext('delete a');
const names = informer.list(namespace).map((object) => object.metadata.name);
if (JSON.stringify(names) !== '["b"]') throw new Error(`the cache has ${names}`);
stopping = true;
await informer.stop();
console.log('ok');
process.exit(0);
