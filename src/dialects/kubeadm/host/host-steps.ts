/** What the upgrade of one host consists of, over SSH or by an agent: its steps, a healthy etcd, proof, and the way back. */
import { kubeletVersionOf, type Node, type Pod, readyCondition } from '../../../kube/resources.ts';
import { sleep } from '../../../util/clock.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import type { ShellResult } from '../../../util/run-program.ts';
import type { Tools } from '../../../util/tools.ts';
import { parseVersion } from '../../../util/version.ts';
import { describeFinding } from '../../../versions/findings.ts';
import { nodeFindings } from '../../../versions/kubeadm-rules.ts';
import { type EtcdAnswer, etcdProblems, moveLeaderScript, nextLeader } from './etcd.ts';
import { attempt, type Host, type Part, type Shells, saidBy, type Upgrade } from './host.ts';
import { type HostFacts, probeHost, readFacts } from './probe.ts';
import type { HostStep, StepBody, StepContext } from './scripts.ts';
import * as scripts from './scripts.ts';
import { hostChecks, isAt, problemsOf, untilRight } from './verify.ts';

export interface HostStepsParts extends Pick<Tools, 'clock' | 'log'>, Omit<StepContext, 'step'> {
  readonly shells: Shells;
  readonly host: Host;
  readonly parts: readonly Part[];
  /** What each member of etcd says, by the host that it is on. */
  readonly members: () => Promise<Map<string, EtcdAnswer>>;
  readonly node: () => Promise<Node>;
  /** Mirror pods of its static pods; may be those of all hosts. */
  readonly pods: () => Promise<readonly Pod[]>;
  readonly abort: AbortSignal;
  /** Says, while the host is waited for, why it does not go on. */
  readonly tell?: (why: string) => void;
}

/** One that starts again is away for minutes: it refuses at once, or each attempt takes until its own time is over. */
const SHELL_RETRIES = 100;
const SHELL_RETRY_MS = 3000;
/** Milliseconds for components to come up. */
export const VERIFY_MS = 300_000;
/** Milliseconds for etcd to recover from the restart before. */
export const ETCD_MS = 120_000;
/** Milliseconds for containerd to start, and for the kubelet to report it. */
const UP_MS = 120_000;

/** All that can be checked before the host is drained, kubeadm's own preflight too. Stages the binaries; replaces nothing. */
export async function prepare(on: HostStepsParts, upgrade: Upgrade): Promise<void> {
  const { shells, host, clock, log } = on;
  const { problems, ground, busy } = await probeHost(shells, upgrade, host, clock.now());
  // The kubelet's configuration may allow cgroup v1, and kubeadm looks there.
  const node = nodeFindings({ ...ground, allowsCgroupV1: true }, parseVersion(upgrade.version));
  const others = busy
    .filter((what) => what.startsWith('kubeadm'))
    .map((what) => `${what}, runs on this host: wait for its end, or end it if it hangs`);
  const wrong = [...problems, ...node]
    .filter(({ severity }) => severity !== 'warn')
    .map(describeFinding);
  for (const { message } of problems.filter(({ severity }) => severity === 'warn'))
    log.warn(message);
  if (wrong.length + others.length > 0)
    throw new RefitError('REFIT_REFUSED', '', { problems: [...wrong, ...others] });
  // `kubeadm upgrade node` checks all hosts as it does workers.
  await succeed(on, 'stage', scripts.prepareScript(upgrade, { ...host, role: 'worker' }, false));
  await untilEtcdIsHealthy(on);
}

/** Does nothing if the journal on the host says that it is done; waits for one that runs. */
export async function carryOut(on: HostStepsParts, step: HostStep, body: StepBody): Promise<void> {
  await succeed(on, step, scripts.stepScript({ ...on, step }, body));
}

/** kubeadm asks the API server only once: where that is away, as after a power cut, the step is repeated when it is back. */
export async function carryOutOnceMore(
  on: HostStepsParts,
  step: HostStep,
  body: StepBody,
): Promise<void> {
  try {
    await carryOut(on, step, body);
  } catch (error) {
    if (await on.node().catch(() => undefined)) throw error;
    await until(on, VERIFY_MS, on.node);
    await carryOut(on, step, body);
  }
}

export async function succeed(on: HostStepsParts, step: HostStep, script: string): Promise<void> {
  const result = await run(on, script);
  on.abort.throwIfAborted();
  if (result.code === 0) return;
  const what =
    result.code === scripts.EXIT_BUSY
      ? 'another step still runs there'
      : saidBy(result) || 'no output';
  throw new RefitError(
    'REFIT_REFUSED',
    `step ${step} failed with exit code ${result.code}: ${what}`,
  );
}

/** Before this member restarts, all others are healthy. One that leads gives that up first. */
export async function untilEtcdIsHealthy(on: HostStepsParts): Promise<void> {
  const { host, shells, members, log } = on;
  const { name, role } = host;
  if (role !== 'controlPlane') return;
  const answers = await until(on, ETCD_MS, async () => {
    const all = await members();
    // This host may be half upgraded: its own kubeadm fixes it.
    if (typeof all.get(name) !== 'object') all.set(name, false);
    expectNone(etcdProblems(all).map(({ found, cure }) => `etcd: ${found}; ${cure}`));
    return all;
  });
  const next = nextLeader(answers.get(name), answers.values());
  if (next === undefined) return;
  const moved = await attempt(shells.run(host, moveLeaderScript(next)));
  if (moved.code !== 0 || moved.stdout.includes('"error"'))
    log.warn('etcd did not move its leader away', { node: name, problem: saidBy(moved) });
}

export async function untilVerified(on: HostStepsParts): Promise<void> {
  const { shells, host, version, parts, clock } = on;
  let told = 0;
  await until(on, VERIFY_MS, async () => {
    const reading = Promise.all([on.node(), on.pods()]);
    // Where the API server is away, the crash of the kubelet may be the reason.
    reading.catch(() => undefined);
    const facts = await readFacts(shells, host);
    const { kubeletCrashes: crashes } = facts;
    if (parts.includes('kubelet') && crashes !== undefined && crashes.times > told) {
      told = crashes.times;
      tellCrashes(on, crashes);
    }
    const [node, pods] = await reading;
    expectNone(problemsOf(hostChecks({ facts, node, pods }, version, parts, clock.now())));
  });
}

function tellCrashes(
  { host, log, tell }: HostStepsParts,
  { times, line }: NonNullable<HostFacts['kubeletCrashes']>,
): void {
  const often = times === 1 ? 'once' : `${times} times`;
  const last = line === '' ? '' : `; last line of its log: ${line}`;
  const why = `the new kubelet crashed ${often}${last}`;
  log.warn(why, { node: host.name });
  tell?.(why);
}

/** A kubelet that does not come up is replaced by the one before. Says what became of it; empty if nothing is to be undone. */
export async function rollBack(on: HostStepsParts): Promise<string> {
  const { host, rollout, version, log, abort } = on;
  const reported = kubeletVersionOf(await on.node().catch(() => undefined));
  // An API server that does not answer says nothing about the kubelet.
  if (!reported || reported === version) return '';
  log.warn('the kubelet did not come up; rolling back', { node: host.name });
  const back = await attempt(run(on, scripts.rollBackScript(rollout)));
  const said = saidBy(back);
  if (back.code === 0)
    return said === ''
      ? ''
      : `; rolled back: ${said} was put back and started; check that the Node is Ready`;
  abort.throwIfAborted();
  return `; the roll-back failed: ${said}`;
}

/** Until `ask` resolves. It rejects while something is wrong, also while the API server or a host is away. */
export async function until<T>(
  on: Pick<Tools, 'clock'> & { abort: AbortSignal },
  ms: number,
  ask: () => Promise<T>,
) {
  const asked = async () => (await Promise.allSettled([ask()]))[0];
  const end = await untilRight(asked, ({ status }) => status === 'fulfilled', {
    ...on,
    withinMs: ms,
  });
  if (end.status === 'fulfilled') return end.value;
  throw new RefitError('REFIT_REFUSED', messageOf(end.reason));
}

export function expectNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new Error(problems.join('; '));
}

/** If the connection breaks, the step continues on its host: running the script again waits for it. */
async function run(
  { shells, host, clock, log, abort }: HostStepsParts,
  script: string,
): Promise<ShellResult> {
  let told = '';
  for (let left = SHELL_RETRIES; ; left--) {
    try {
      return await shells.run(host, script);
    } catch (error) {
      abort.throwIfAborted();
      if (left === 0) throw error;
      const problem = messageOf(error);
      if (problem !== told) log.warn('lost the connection to the host, retrying', { problem });
      told = problem;
      await sleep(clock, SHELL_RETRY_MS, abort);
    }
  }
}

/** Its shims live on, so no container is restarted. Puts back what was there if the Node does not become Ready with that version. */
export async function upgradeContainerd(
  on: HostStepsParts,
  containerd: NonNullable<Upgrade['containerd']>,
) {
  const { version } = containerd;
  let isRead = true;
  try {
    await carryOut(on, 'containerd', scripts.containerdBody(containerd));
    await until(on, UP_MS, async () => {
      isRead = false;
      const node = await on.node();
      isRead = true;
      const reported = node.status?.nodeInfo?.containerRuntimeVersion ?? '';
      const [, found] = /^containerd:\/\/v?(\d+\.\d+\.\d+)/.exec(reported) ?? [];
      if (!isAt(found, version)) throw new Error(`the Node reports ${reported}`);
      if (readyCondition(node)?.status !== 'True') throw new Error('the Node is not Ready');
    });
  } catch (cause) {
    on.abort.throwIfAborted();
    const unread = `containerd ${version} stays: the Node cannot be read: ${messageOf(cause)}; run the upgrade again`;
    if (!isRead) throw new RefitError('REFIT_REFUSED', unread, { cause });
    const back = await attempt(run(on, scripts.putBackScript(on.rollout, containerd)));
    const said = saidBy(back);
    const undone =
      back.code === 0
        ? `${said} was put back and started`
        : `the earlier one cannot be put back: ${said}`;
    const why = `containerd ${version} did not come up, see journalctl -u containerd on the host`;
    throw new RefitError('REFIT_REFUSED', `${undone}; ${why}`, { cause });
  }
}
