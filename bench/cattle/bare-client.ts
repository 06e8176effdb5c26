/** A program that only lists the objects that the controller follows. Its arguments are `KUBECONFIG-FILE NAMESPACE`. */
import { cattlePlans } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { jobs, nodes, pods, type Resource } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';

const NAMESPACED: readonly Resource[] = [cattlePlans, jobs, pods];

async function list(path: string, namespace: string): Promise<void> {
  using client = createClient(await loadClusterConfig({ path }));
  await Promise.all([
    client.listAll(nodes),
    ...NAMESPACED.map(async (resource) => await client.listAll(resource, { namespace })),
  ]);
}

const [path = '', namespace = ''] = process.argv.slice(2);
void list(path, namespace);
