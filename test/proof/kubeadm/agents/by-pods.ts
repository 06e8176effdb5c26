/**
 * Tests an upgrade by agents that kubelets run as pods of the DaemonSet, as docs/guides/install.md describes. The proof
 * ends pods during the upgrade.
 */
import { globSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { DIRECTORY } from '../../../../src/install/host/agent-in-pod.ts';
import { procedureOf } from '../../../../src/signal/agent-presence.ts';
import { decodeSignal } from '../../../../src/signal/annotations.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { REFIT_ARCHIVE, REFIT_IMAGE } from '../images/refit.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';
import { configureAgent, listOffers, serve } from './agent.ts';
import { configure, ended, JOURNAL, nodeOf, request, startExtension, textOf } from './upgrade.ts';

const MANIFEST = join(
  import.meta.dirname,
  '../../../../deploy/chart/manifests/agent/daemonset.yaml',
);
const SELECTOR = ['-l', 'app.kubernetes.io/component=refit-agent'];
const PROGRAM = `${DIRECTORY}/refit`;
/**
 * Finds the process of the agent. The pattern is anchored so that a process with the pattern in its arguments does not
 * match.
 */
const AGENT_PID = `pgrep -f '^${PROGRAM} .*agent --procedure'`;

interface AgentPods {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly spec: { readonly nodeName?: string };
    readonly status: { readonly containerStatuses?: readonly { readonly ready: boolean }[] };
  }[];
}

/** Upgrades the cluster by agents in pods. The folder `parts` must have the image of Refit. */
export async function upgradeByPods(scene: Scene): Promise<void> {
  const { cluster, operator, checks, to } = scene;
  const { machines, controlPlanes, workers } = cluster;
  const [first] = machines;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await settled(cluster, operator);
  const { folder, sha256 } = await listOffers(first, to);
  const server = await serve(folder);
  const extension = await startExtension(scene, first);
  try {
    await checks.check('kubelets start the agents, from the image of Refit alone', async () => {
      for (const machine of machines) {
        await configureAgent(machine);
        await machine.must(`ctr -n k8s.io images import /opt/parts/${REFIT_ARCHIVE}`);
      }
      await applyDaemonSet(scene);
      await until('the agents', 180, async () => {
        const all = await Promise.all(machines.map(async ({ name }) => await nodeOf(scene, name)));
        return all.every((node) => procedureOf(node) === 'kubeadm');
      });
      return await programs(machines);
    });
    await configure(scene);
    for (const machine of controlPlanes)
      await checks.check(`${machine.name}: its agent is killed while kubeadm works`, async () => {
        await request(scene, machine.name, 'controller', sha256);
        return await killAmidKubeadm(scene, machine);
      });
    for (const machine of workers)
      await checks.check(`${machine.name}: its pod ends at each step`, async () => {
        await request(scene, machine.name, 'worker', sha256);
        return await endAtEachStep(scene, machine);
      });
    await keepLogs(scene);
    await checks.check('when the DaemonSet is gone, no agent runs', async () => {
      await operator.administer('-n', 'kube-system', 'delete', 'daemonset', 'refit-agent');
      await until('the pods to end', 120, async () => (await podsOf(scene)).items.length === 0);
      const running = await Promise.all(machines.map(async (each) => await each.run(AGENT_PID)));
      return machines.flatMap(({ name }, index) =>
        running[index]?.ok ? [`an agent runs on ${name}`] : [],
      );
    });
    await verify('after the pods', checks, cluster, operator, to);
  } finally {
    await extension.stop();
    await operator.keep(['extension'], extension.said());
    server.close();
  }
}

/** Applies the manifest with the changes that docs/guides/cluster-api/kubeadm-nodes.md describes, and no others. */
async function applyDaemonSet({ operator }: Scene): Promise<void> {
  const object = parse(await readFile(MANIFEST, 'utf8')) as {
    spec: { template: { spec: { containers: [object] } } };
  };
  const pod = object.spec.template.spec;
  const args = ['--procedure=kubeadm', '--kubeconfig=/etc/kubernetes/kubelet.conf'];
  pod.containers = [{ ...pod.containers[0], image: REFIT_IMAGE, args }];
  const file = join(dirname(operator.manifest), 'daemonset.json');
  await writeFile(file, JSON.stringify(object));
  await operator.administer('apply', '-f', file);
}

/** What is wrong with the program on the hosts. */
async function programs(machines: readonly Machine[]): Promise<string[]> {
  const found = await Promise.all(
    machines.map(async ({ root }) => await stat(join(root, PROGRAM))),
  );
  return machines.flatMap(({ name }, index) => {
    const { uid, mode = 0 } = found[index] ?? {};
    return uid === 0 && (mode & 0o777) === 0o755 ? [] : [`${name}: ${PROGRAM} has other rights`];
  });
}

const podsOf = async ({ operator }: Scene) => await operator.get<AgentPods>('pods', ...SELECTOR);

/**
 * Kills the agent's process while kubeadm runs. The API server of this machine may not run at that time, so the test
 * can't delete a pod. The kubelet restarts the container.
 */
async function killAmidKubeadm(scene: Scene, machine: Machine): Promise<string[]> {
  await until('kubeadm to begin', 300, async () =>
    (await textOf(machine, JOURNAL)).includes(' kubeadm begun'),
  );
  const before = await machine.must(AGENT_PID);
  await machine.must(`kill -KILL ${before.trim()}`);
  const wrong = await ended(scene, machine.name);
  const after = await machine.must(AGENT_PID);
  return after === before ? [...wrong, 'the kubelet did not start another agent'] : wrong;
}

/**
 * Ends the agent at each step. It alternates between three ways: delete the pod, update the DaemonSet, kill the
 * process.
 */
async function endAtEachStep(scene: Scene, machine: Machine): Promise<string[]> {
  const ways = [deletePod, restartDaemonSet, killAgent];
  const steps: string[] = [];
  let wrong: string[] | undefined;
  const end = ended(scene, machine.name).then(
    (found) => {
      wrong = found;
    },
    (error: unknown) => {
      wrong = [messageOf(error)];
    },
  );
  await until(`the end of ${machine.name}`, 600, async () => {
    const node = await nodeOf(scene, machine.name);
    const step = decodeSignal(node.metadata.annotations)?.status?.status;
    if (wrong !== undefined || step === undefined || steps.includes(step))
      return wrong !== undefined;
    const before = (await machine.run(AGENT_PID)).stdout;
    // Skips this round if no agent runs. The agent of the previous step may have ended, and the next agent may not have
    // started yet.
    if (before === '') return false;
    steps.push(step);
    await ways[(steps.length - 1) % ways.length]?.(scene, machine);
    scene.log(`${machine.name}: ended its pod at ${step}`);
    await until('another agent', 120, async () => {
      const now = (await machine.run(AGENT_PID)).stdout;
      return now !== '' && now !== before;
    });
    return false;
  });
  await end;
  const missed = ['ApplyingUpdate'].filter((step) => !steps.includes(step));
  return [...(wrong ?? []), ...missed.map((step) => `no pod ended at ${step}`)];
}

async function deletePod(scene: Scene, { name }: Machine): Promise<void> {
  const pod = (await podsOf(scene)).items.find(({ spec }) => spec.nodeName === name);
  await scene.operator.administer('-n', 'kube-system', 'delete', 'pod', pod?.metadata.name ?? '');
}

async function restartDaemonSet({ operator }: Scene): Promise<void> {
  const name = 'daemonset/refit-agent';
  await operator.administer('-n', 'kube-system', 'rollout', 'restart', name);
  await operator.administer('-n', 'kube-system', 'rollout', 'status', name, '--timeout=180s');
}

async function killAgent(_scene: Scene, machine: Machine): Promise<void> {
  await machine.must(`kill -KILL $(${AGENT_PID})`);
}

/**
 * Reads the logs from the files of the kubelets. The API server trusts the serving certificates of the kubelets only
 * after somebody has approved them.
 */
async function keepLogs({ cluster: { machines }, operator }: Scene): Promise<void> {
  for (const { name, root } of machines) {
    const logs = globSync('var/log/pods/kube-system_refit-agent-*/agent/*.log', { cwd: root });
    const texts = await Promise.all(
      logs.map(async (log) => await readFile(join(root, log), 'utf8')),
    );
    await operator.keep([`agent-${name}`], texts.join(''));
  }
}
