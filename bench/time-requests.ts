/**
 * Runs one process of the comparison. `time-requests.ts <client>[,<client>…] <kubeconfig> <count>` prints the median
 * duration of a GET for each client.
 */
import { median } from './statistics.ts';

/** Sends one request, and resolves with the object in the form that users of the client get. */
type Get = () => Promise<unknown>;

/**
 * The number of requests that are not measured. They open connections, fill caches, and let the compilers optimize the
 * code.
 */
const WARM_UP = 20;
const NAMESPACE = 'default';

/** Creates each client. Each client loads only the modules that it needs itself. */
const CLIENTS: Readonly<Record<string, (kubeconfig: string) => Promise<Get>>> = {
  async refit(kubeconfig) {
    const { createClient } = await import('../src/kube/transport/http-client.ts');
    const { loadClusterConfig } = await import('../src/kube/config/kubeconfig.ts');
    const { namespaces } = await import('../src/kube/resources.ts');
    const client = createClient(await loadClusterConfig({ path: kubeconfig }));
    return async () => await client.get(namespaces, NAMESPACE);
  },
  /** The smallest client that is possible with Node.js: one connection that is kept open, the body as text, and JSON. */
  async bare(kubeconfig) {
    const { Agent, get: send } = await import('node:https');
    const { loadClusterConfig } = await import('../src/kube/config/kubeconfig.ts');
    const { credentialsOf } = await import('../src/kube/config/credentials.ts');
    const { systemClock } = await import('../src/util/clock.ts');
    const config = await loadClusterConfig({ path: kubeconfig });
    const { headers, tls } = await credentialsOf(config, systemClock).current();
    const agent = new Agent({ ...tls, keepAlive: true });
    const url = `${config.server}/api/v1/namespaces/${NAMESPACE}`;
    return async () =>
      await new Promise((resolve, reject) => {
        const outgoing = send(
          url,
          { agent, headers: { ...headers, accept: 'application/json' } },
          (response) => {
            let body = '';
            response.setEncoding('utf8').on('data', (text: string) => {
              body += text;
            });
            response.once('error', reject).once('end', () => resolve(JSON.parse(body)));
          },
        );
        outgoing.once('error', reject);
      });
  },
  async 'client-node'(kubeconfig) {
    const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const api = config.makeApiClient(CoreV1Api);
    return async () => await api.readNamespace({ name: NAMESPACE });
  },
};

const [names = '', kubeconfig = '', count = '0'] = process.argv.slice(2);
const clients: { get: Get; times: number[] }[] = [];
for (const name of names.split(',')) {
  const get = await CLIENTS[name]?.(kubeconfig);
  if (get === undefined) throw new Error(`${name} is none of ${Object.keys(CLIENTS).join(', ')}`);
  clients.push({ get, times: [] });
}
for (let done = -WARM_UP; done < Number(count); done++) {
  for (const { get, times } of clients) {
    const startedAt = performance.now();
    await get();
    if (done >= 0) times.push(performance.now() - startedAt);
  }
}
process.stdout.write(`${clients.map(({ times }) => median(times)).join(' ')}\n`);
// Ends the process, because connections that are kept open would prevent its end.
process.exit();
