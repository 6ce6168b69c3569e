// The job `lookout bench sync`, with @kubernetes/client-node: an informer from its start until it holds all
// pods. Prints the same JSON.
//
//     node main.js sync --server URL [--ca FILE]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as k8s from '@kubernetes/client-node';

const { values: flags } = parseArgs({
  args: process.argv.slice(3),
  options: { server: { type: 'string' }, ca: { type: 'string' } },
});

/** A line of /proc/self/status, in bytes (or a count). */
function status(name) {
  const line = readFileSync('/proc/self/status', 'utf8')
    .split('\n')
    .find((l) => l.startsWith(`${name}:`));
  const [number, unit] = line.slice(name.length + 1).trim().split(/\s+/);
  return Number(number) * (unit === 'kB' ? 1024 : 1);
}

const before = status('RssAnon');
const cpuBefore = process.cpuUsage();
const begin = process.hrtime.bigint();

const config = new k8s.KubeConfig();
config.loadFromOptions({
  clusters: [{ name: 'bench', server: flags.server, caFile: flags.ca, skipTLSVerify: !flags.server.startsWith('https:') }],
  users: [{ name: 'bench' }],
  contexts: [{ name: 'bench', cluster: 'bench', user: 'bench' }],
  currentContext: 'bench',
});
const api = config.makeApiClient(k8s.CoreV1Api);
const informer = k8s.makeInformer(config, '/api/v1/pods', () => api.listPodForAllNamespaces());
let added = 0;
informer.on('add', () => added++);
informer.on('error', (error) => {
  console.error('client-node-peer:', error.message);
  process.exit(1);
});
await informer.start();
const objects = informer.list().length;

const cpu = process.cpuUsage(cpuBefore);
const result = {
  job: 'sync',
  client: 'client-node',
  encoding: 'json',
  mode: 'list',
  keep: 'all',
  node: process.version,
  wall_s: Number(process.hrtime.bigint() - begin) / 1e9,
  cpu_user_s: cpu.user / 1e6,
  cpu_system_s: cpu.system / 1e6,
  objects,
  rss_anon_before: before,
  rss_anon: status('RssAnon'),
  vm_hwm: status('VmHWM'),
  threads: status('Threads'),
};
if (globalThis.gc) {
  globalThis.gc();
  result.rss_anon_settled = status('RssAnon');
}
console.log(JSON.stringify(result));
process.exit(added === objects ? 0 : 1);
