/**
 * Upgrades a node with pods of the agent's DaemonSet. Each pod is ended in the middle of the work, and the next pod
 * continues.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIRECTORY } from '../../../src/install/host/agent-in-pod.ts';
import { sleep, systemClock } from '../../../src/util/clock.ts';
import { AgentPod, type PodImage } from './pod.ts';

const PROGRAM = join(DIRECTORY, 'refit');

/** What the test observed during the upgrade by pods. */
export interface ByPods {
  /** Status and report at the end of the upgrade. */
  readonly end: readonly [status: string, report: string];
  /** The statuses of the signal at which a pod was ended. */
  readonly endedAt: readonly string[];
  /** Agents that ran after their pod had ended. */
  readonly left: readonly string[];
  /** True if a pod replaced the program on the host, which was of another version. */
  readonly isReplaced: boolean;
  readonly mode: number;
  /** The inode numbers of the files that pods wrote as the program on the host. */
  readonly inodes: readonly number[];
  /** The output of all pods. */
  readonly output: string;
}

/** The processes of agents that pods started on this host. */
const agents = (): string =>
  spawnSync('pgrep', ['-f', `^${PROGRAM} .*agent --kubeconfig`], {
    encoding: 'utf8',
  }).stdout.trim();

/**
 * Upgrades the node with pods. EXCHANGE contains `image.json`. `upgrade` resolves at the end of the upgrade, and
 * `statusOf` resolves with the status that the agent reported last.
 */
export async function upgradeByPods(
  exchange: string,
  upgrade: () => Promise<[string, string]>,
  statusOf: () => Promise<string | undefined>,
): Promise<ByPods> {
  const image = JSON.parse(readFileSync(join(exchange, 'image.json'), 'utf8')) as PodImage;
  const pods: AgentPod[] = [];
  const start = (): AgentPod => {
    const pod = new AgentPod(join(exchange, `pod-${pods.length}`), image);
    pods.push(pod);
    return pod;
  };
  const inodes = new Set<number>();
  const left: string[] = [];
  const endedAt: string[] = [];
  let pod = start();
  await untilAgent(pod);
  // Leaves a program on the host, as a pod of another version does. Removes the present file first, so that the file of
  // a running agent stays unchanged.
  await pod.stop();
  spawnSync('rm', [PROGRAM]);
  writeFileSync(PROGRAM, 'another version', { mode: 0o755 });

  pod = start();
  const progress: { end?: [string, string] } = {};
  const upgrading = upgrade().then(
    (found) => {
      progress.end = found;
    },
    (error: unknown) => {
      progress.end = [String(error), ''];
    },
  );
  while (progress.end === undefined) {
    const status = await statusOf();
    if (status !== undefined && !endedAt.includes(status) && agents() !== '') {
      inodes.add(statSync(PROGRAM).ino);
      endedAt.push(status);
      await pod.stop(endedAt.length % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
      left.push(agents());
      pod = start();
      await untilAgent(pod);
    }
    await sleep(systemClock, 20);
  }
  await upgrading;
  await untilAgent(pod);
  const { mode, ino } = statSync(PROGRAM);
  inodes.add(ino);
  await pod.stop();
  left.push(agents());
  return {
    end: progress.end,
    endedAt,
    left: left.filter((found) => found !== ''),
    isReplaced: readFileSync(PROGRAM).length > 1_000,
    mode: mode & 0o777,
    inodes: [...inodes],
    output: pods.flatMap(({ output }) => output).join('\n'),
  };
}

/** Resolves once the agent of the pod runs on the host. */
async function untilAgent({ output }: AgentPod): Promise<void> {
  const last = performance.now() + 60_000;
  while (agents() === '') {
    if (performance.now() > last) throw new Error(`no agent runs: ${output.join('\n')}`);
    await sleep(systemClock, 50);
  }
}
