/**
 * Acts as the infrastructure provider. It gives each Machine one machine of this proof, and runs the bootstrap data
 * there, as cloud-init does.
 */
import { dirname } from 'node:path';
import { parse } from 'yaml';
import { CONTROL_PLANE_LABEL } from '../../../../src/api/capi/machine.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { type KubeObject, namespaced, secrets } from '../../../../src/kube/resources.ts';
import { sleep, systemClock } from '../../../../src/util/clock.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import { capiMachines, NAMESPACE, type ProofMachine } from '../../capi/machines/objects.ts';
import type { Machine } from '../../machines/machine.ts';
import type { Cluster } from '../cluster.ts';

const API = 'infrastructure.cluster.x-k8s.io/v1beta2';
export const devClusters = namespaced<KubeObject>(API, 'DevCluster');
const devMachines = namespaced<KubeObject>(API, 'DevMachine');
const LOOK_MS = 500;

/** Watches the Machines until the returned value is disposed. */
export function provide(
  client: KubeClient,
  cluster: Cluster,
  log: (line: string) => void,
): AsyncDisposable {
  const free = { controlPlanes: [...cluster.controlPlanes], workers: [...cluster.workers] };
  const given = new Set<string>();
  const end = new AbortController();
  const look = async (): Promise<void> => {
    const { items } = await client.listAll(capiMachines, { namespace: NAMESPACE });
    for (const wanted of items.filter(({ metadata }) => !given.has(metadata.name))) {
      const secret = wanted.spec.bootstrap?.dataSecretName;
      if (secret === undefined) continue;
      const isControlPlane = CONTROL_PLANE_LABEL in (wanted.metadata.labels ?? {});
      const machine = (isControlPlane ? free.controlPlanes : free.workers).shift();
      if (machine === undefined) throw new Error(`no machine is left for ${wanted.metadata.name}`);
      given.add(wanted.metadata.name);
      const { data } = await client.get(secrets, secret, { namespace: NAMESPACE });
      await report(client, wanted, machine);
      await boot(machine, Buffer.from(data?.['value'] ?? '', 'base64').toString());
      log(`${machine.name} is ${wanted.metadata.name}`);
    }
  };
  const following = (async () => {
    while (!end.signal.aborted) {
      await look().catch((error: unknown) => log(`a Machine's machine: ${messageOf(error)}`));
      await sleep(systemClock, LOOK_MS, end.signal).catch(() => undefined);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      end.abort();
      await following;
    },
  };
}

const providerId = ({ name }: Machine): string => `proof://${name}`;

/** Reports what the contract of Cluster API requires from a provider. */
async function report(client: KubeClient, { spec }: ProofMachine, machine: Machine): Promise<void> {
  const at = { type: 'merge', namespace: NAMESPACE } as const;
  const name = spec.infrastructureRef?.name ?? '';
  await client.patch(devMachines, name, { spec: { providerID: providerId(machine) } }, at);
  const addresses = [{ type: 'InternalIP', address: machine.address }];
  const status = { initialization: { provisioned: true }, addresses };
  await client.patch(devMachines, name, { status }, { ...at, subresource: 'status' });
}

interface CloudConfig {
  readonly write_files?: readonly {
    readonly path: string;
    readonly owner?: string;
    readonly permissions?: string;
    readonly encoding?: string;
    readonly content: string;
  }[];
  readonly runcmd?: readonly string[];
}

/** Writes the files of a cloud-config and runs its commands. Throws if kubeadm did not succeed. */
async function boot(machine: Machine, template: string): Promise<void> {
  const metadata: Readonly<Record<string, string>> = {
    local_ipv4: machine.address,
    provider_id: providerId(machine),
  };
  const text = template.replaceAll(
    /\{\{ ds\.meta_data\.(\w+) \}\}/g,
    (_, key: string) => metadata[key] ?? '',
  );
  const { write_files: files = [], runcmd = [] } = parse(text) as CloudConfig;
  for (const { path, owner = 'root:root', permissions = '0644', encoding = '', content } of files) {
    if (encoding !== '')
      throw new Error(`${path} is encoded as ${encoding}: nothing here reads that`);
    const bytes = Buffer.from(content).toString('base64');
    await machine.must(
      `mkdir -p ${dirname(path)} && echo ${bytes} | base64 -d >${path} && chmod ${permissions} ${path} && chown ${owner} ${path}`,
    );
  }
  await machine.must(`${runcmd.join('\n')}\ntest -e /run/cluster-api/bootstrap-success.complete`);
}
