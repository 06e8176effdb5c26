/** Owns one process of the comparison of clients: `time-requests.ts <client> <kubeconfig> <count>` prints milliseconds. */

/** Sends one request and resolves with the object, as users of the client get it. */
type Get = () => Promise<unknown>;

/** Connections, caches and compilers are warm after these. */
const WARM_UP = 20;
const NAMESPACE = 'default';

/** Each client loads nothing of the other. */
const CLIENTS: Readonly<Record<string, (kubeconfig: string) => Promise<Get>>> = {
  async refit(kubeconfig) {
    const { createClient } = await import('../src/kube/transport/http-client.ts');
    const { loadClusterConfig } = await import('../src/kube/config/kubeconfig.ts');
    const { namespaces } = await import('../src/kube/resources.ts');
    const client = createClient(await loadClusterConfig({ path: kubeconfig }));
    return async () => await client.get(namespaces, NAMESPACE);
  },
  async 'client-node'(kubeconfig) {
    const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const api = config.makeApiClient(CoreV1Api);
    return async () => await api.readNamespace({ name: NAMESPACE });
  },
};

const [client = '', kubeconfig = '', count = '0'] = process.argv.slice(2);
const get = await CLIENTS[client]?.(kubeconfig);
if (get === undefined) throw new Error(`${client} is none of ${Object.keys(CLIENTS).join(', ')}`);
for (let done = 0; done < WARM_UP; done++) await get();
const startedAt = performance.now();
for (let done = 0; done < Number(count); done++) await get();
process.stdout.write(`${performance.now() - startedAt}\n`);
// Connections that are kept alive would keep the process alive.
process.exit();
