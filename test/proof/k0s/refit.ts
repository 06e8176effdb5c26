/** Installs Refit on the hosts as docs/guides/k0s.md describes, starts and stops it, and runs its commands. */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { isK0sLeader } from '../../../src/signal/names.ts';
import { applyManifest } from '../../../tools/controlplane/apply.ts';
import { type RunResult, run } from '../../../tools/controlplane/run.ts';
import type { Machine } from '../machines/machine.ts';
import { OPERATOR } from '../machines/namespaces.ts';
import { until } from '../wait.ts';
import type { Cluster } from './cluster/cluster.ts';
import { EXECUTABLE } from './cluster/furnish.ts';

const DEPLOY = join(import.meta.dirname, '../../../deploy');
/** The file with the flags of each agent. */
const AGENT = 'etc/refit/agent.yaml';
const CONTROLLER_CONF = '/etc/refit/controller.conf';
const AGENT_CONF = '/etc/refit/agent.kubeconfig';

export class Refit {
  readonly #cluster: Cluster;
  readonly #binary: string;

  /** `binary` is the binary of the release. */
  constructor(cluster: Cluster, binary: string) {
    this.#cluster = cluster;
    this.#binary = binary;
  }

  /** Steps 1 to 3 of the guide, and the rights of step 6. Nothing runs after it. */
  async install(): Promise<void> {
    const { kubeconfig, controllers, machines } = this.#cluster;
    for (const name of ['rbac.yaml', 'rbac-crds.yaml'])
      await applyManifest(kubeconfig, await readFile(join(DEPLOY, name), 'utf8'));
    const perNode = await readFile(join(DEPLOY, 'rbac-controlnode.yaml'), 'utf8');
    await Promise.all(
      machines.map(async ({ root }) => {
        await cp(this.#binary, join(root, 'local/bin/refit'));
        await mkdir(join(root, 'etc/refit'), { recursive: true });
      }),
    );
    for (const machine of controllers) {
      await applyManifest(kubeconfig, perNode.replaceAll('CONTROL_NODE', machine.name));
      await credentials(machine, 'refit-controller', CONTROLLER_CONF);
      await credentials(machine, `refit:controlnode:${machine.name}`, AGENT_CONF);
    }
  }

  /** Gives the controllers more environment and flags before they start. */
  async setUp({ environment, flags }: { environment: string; flags: string }): Promise<void> {
    for (const { root } of this.#cluster.controllers) {
      await writeFile(join(root, 'etc/refit.environment'), `${environment}\n`);
      await writeFile(join(root, 'etc/refit.flags'), `${flags}\n`);
    }
  }

  /** Starts leaders, on two controllers as the guide says. Resolves when one of them leads. */
  async startControllers(machines = this.#cluster.controllers.slice(0, 2)): Promise<void> {
    await this.beginControllers(machines);
    await until('Refit to lead', 120, async () => await this.leads());
  }

  /** Starts leaders, and does not wait until one of them leads. */
  async beginControllers(machines = this.#cluster.controllers.slice(0, 2)): Promise<void> {
    for (const machine of machines)
      await machine.must(
        'rm -f /var/lib/services/refit-controller.off; systemctl start refit-controller',
      );
  }

  async stopControllers(): Promise<void> {
    for (const machine of this.#cluster.controllers) await off(machine, 'refit-controller');
  }

  /** Resolves with true if a controller of Refit holds the Lease. */
  async leads(): Promise<boolean> {
    const holder = await this.#cluster.holder();
    return holder !== '' && !isK0sLeader(holder);
  }

  /** Starts agents. `flags` are lines of the file of each agent. */
  async startAgents(machines: readonly Machine[], flags: object = {}): Promise<void> {
    await Promise.all(
      machines.map(async (machine) => {
        const own = this.#cluster.controllers.includes(machine)
          ? { object: 'controlnode', name: machine.name, kubeconfig: AGENT_CONF }
          : { kubeconfig: '/var/lib/k0s/kubelet.conf' };
        await writeFile(join(machine.root, AGENT), stringify({ ...own, ...flags }));
        await machine.must('rm -f /var/lib/services/refit-agent.off; systemctl start refit-agent');
      }),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#cluster.machines.map(async (machine) => {
        for (const service of ['refit-controller', 'refit-agent']) await off(machine, service);
      }),
    );
  }

  /** Runs a command of Refit as the administrator. */
  async command(...args: readonly string[]): Promise<RunResult> {
    const environment = { KUBECONFIG: this.#cluster.kubeconfig };
    return await run(this.#binary, args, { environment, input: '' });
  }
}

/** Stops a service, and keeps its supervisor from starting it. */
async function off(machine: Machine, service: string): Promise<void> {
  await machine.must(`touch /var/lib/services/${service}.off; systemctl stop ${service}`);
}

/** Makes a kubeconfig for a user, with the address of the load balancer. */
async function credentials(machine: Machine, user: string, path: string): Promise<void> {
  const conf = await machine.must(`${EXECUTABLE} kubeconfig create ${user}`);
  const at = join(machine.root, path);
  await writeFile(at, conf.replace(/server: .*/, `server: https://${OPERATOR}:6443`), {
    mode: 0o600,
  });
}
