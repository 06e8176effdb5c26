/**
 * Implements the upgrade of one host, over SSH or by an agent: its steps, the wait until etcd is healthy, the
 * verification, and the roll-back.
 */
import { kubeletVersionOf, type Node, type Pod, readyCondition } from '../../../kube/resources.ts';
import { sleep } from '../../../util/clock.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import type { ShellResult } from '../../../util/run-program.ts';
import type { BasicTools, Tools } from '../../../util/tools.ts';
import { parseVersion } from '../../../util/version.ts';
import { describeFinding } from '../../../versions/findings.ts';
import { nodeFindings } from '../../../versions/kubeadm-rules.ts';
import { type EtcdAnswer, etcdProblems, moveLeaderScript, nextLeader } from './etcd.ts';
import { attempt, type Host, type Part, type Shells, saidBy, type Upgrade } from './host.ts';
import { type HostFacts, probeHost, readFacts } from './probe.ts';
import { removedFindings } from './removed-settings.ts';
import type { HostStep, StepBody, StepContext } from './scripts.ts';
import * as scripts from './scripts.ts';
import { crashLoops, hostChecks, isAt, problemsOf, untilRight } from './verify.ts';

export interface HostStepsParts extends BasicTools, Omit<StepContext, 'step'> {
  readonly shells: Shells;
  readonly host: Host;
  readonly parts: readonly Part[];
  /** Resolves with the answer of each etcd member, by the name of its host. */
  readonly members: () => Promise<Map<string, EtcdAnswer>>;
  readonly node: () => Promise<Node>;
  /** Resolves with the mirror pods of the static pods. The pods may be only those of this host, or those of all hosts. */
  readonly pods: () => Promise<readonly Pod[]>;
  readonly abort: AbortSignal;
  /**
   * Refit calls this function with the reason why the host is not verified yet, while it still waits for the
   * verification.
   */
  readonly tell?: (why: string) => void;
}

/**
 * The number of times that a script is tried again. It is large because a host that reboots does not answer for
 * minutes.
 */
const SHELL_RETRIES = 100;
/** The milliseconds between two attempts. The pause is needed because a host may refuse connections immediately. */
const SHELL_RETRY_MS = 3000;
/** The most milliseconds to wait until all components run and are ready. */
export const VERIFY_MS = 300_000;
/** The most milliseconds to wait until etcd has recovered from the previous restart of a member. */
export const ETCD_MS = 120_000;
/** The most milliseconds to wait until containerd has started and the kubelet reports its version. */
const UP_MS = 120_000;

/**
 * Makes all checks that are possible before the drain, including kubeadm's own preflight. Stages the binaries, but does
 * not replace any file in use.
 */
export async function prepare(on: HostStepsParts, upgrade: Upgrade): Promise<void> {
  const { shells, host, clock, log } = on;
  const facts = await probeHost(shells, upgrade, host, clock.now());
  const { problems, ground, busy } = facts;
  const removed = removedFindings({ hosts: [facts] }, upgrade.version, [host.name]);
  // Cgroup v1 is not a problem at this point, because the configuration of the kubelet may allow it. kubeadm's
  // preflight checks that.
  const node = nodeFindings({ ...ground, allowsCgroupV1: true }, parseVersion(upgrade.version));
  const others = busy
    .filter((what) => what.startsWith('kubeadm'))
    .map((what) => `${what}, runs on this host: wait for its end, or end it if it hangs`);
  const wrong = [...problems, ...node, ...removed]
    .filter(({ severity }) => severity !== 'warn')
    .map(describeFinding);
  for (const { message } of problems.filter(({ severity }) => severity === 'warn'))
    log.warn(message);
  if (wrong.length + others.length > 0)
    throw new RefitError('REFIT_REFUSED', '', { problems: [...wrong, ...others] });
  // The role is `worker`, because `kubeadm upgrade node` runs the same checks on all hosts.
  await succeed(on, 'stage', scripts.prepareScript(upgrade, { ...host, role: 'worker' }, false));
  await untilEtcdIsHealthy(on);
}

/**
 * Runs one step. Does nothing if the journal on the host records the step as done. Waits if the step is still running
 * on the host.
 */
export async function carryOut(on: HostStepsParts, step: HostStep, body: StepBody): Promise<void> {
  await succeed(on, step, scripts.stepScript({ ...on, step }, body));
}

/**
 * Runs one step. The step may fail while the API server does not answer, for example after a power cut. In this case,
 * waits for the API server and runs the step once more, because kubeadm itself does not retry its requests.
 */
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
  const result = await runOnHost(on, script);
  on.abort.throwIfAborted();
  if (result.code === 0) return;
  const what =
    result.code === scripts.EXIT_BUSY
      ? 'another step still runs on this host'
      : saidBy(result) || 'no output';
  throw new RefitError(
    'REFIT_REFUSED',
    `step ${step} failed with exit code ${result.code}: ${what}`,
  );
}

/**
 * Waits until all other members of etcd are healthy, because the upgrade restarts the member of this host. If the
 * member of this host is the leader, makes it transfer the leadership to another member.
 */
export async function untilEtcdIsHealthy(on: HostStepsParts): Promise<void> {
  const { host, shells, members, log } = on;
  const { name, role } = host;
  if (role !== 'controlPlane') return;
  const answers = await until(on, ETCD_MS, async () => {
    const all = await members();
    // The member of this host may be unhealthy if the host is half upgraded. The upgrade repairs this member, so its
    // state is ignored.
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
  const toldPods = new Set<string>();
  await until(on, VERIFY_MS, async () => {
    const reading = Promise.all([on.node(), on.pods()]);
    // If these reads fail, the error is thrown only after the facts of the host are read. Only the facts show whether
    // the kubelet crashes.
    reading.catch(() => undefined);
    const facts = await readFacts(shells, host);
    const { kubeletCrashes: crashes } = facts;
    if (parts.includes('kubelet') && crashes !== undefined && crashes.times > told) {
      told = crashes.times;
      tellCrashes(on, crashes);
    }
    const [node, pods] = await reading;
    if (parts.includes('kubeadm'))
      for (const problem of crashLoops(host, pods)) {
        if (!toldPods.has(problem)) warnOf(on, problem);
        toldPods.add(problem);
      }
    expectNone(problemsOf(hostChecks({ facts, node, pods }, version, parts, clock.now())));
  });
}

function tellCrashes(
  on: HostStepsParts,
  { times, line }: NonNullable<HostFacts['kubeletCrashes']>,
): void {
  const often = times === 1 ? 'once' : `${times} times`;
  const last = line === '' ? '' : `; last line of its log: ${line}`;
  warnOf(on, `the new kubelet crashed ${often}${last}`);
}

function warnOf({ host, log, tell }: HostStepsParts, why: string): void {
  log.warn(why, { node: host.name });
  tell?.(why);
}

/**
 * Restores the previous kubelet if the new kubelet does not start. Resolves with a clause about the result, for the end
 * of a message; empty if nothing had to be restored.
 */
export async function rollBack(on: HostStepsParts): Promise<string> {
  const { host, rollout, version, log, abort } = on;
  const reported = kubeletVersionOf(await on.node().catch(() => undefined));
  // If the API server does not answer, the state of the kubelet is unknown, so the kubelet is not replaced.
  if (!reported || reported === version) return '';
  log.warn('the new kubelet does not work; rolling back', { node: host.name });
  const back = await attempt(runOnHost(on, scripts.rollBackScript(rollout)));
  const said = saidBy(back);
  if (back.code === 0)
    return said === ''
      ? ''
      : `; rolled back: ${said} was put back and started; check that the Node is Ready`;
  abort.throwIfAborted();
  return `; the roll-back failed: ${said}`;
}

/**
 * Repeats `ask` until it resolves. `ask` rejects while there is a problem, or while the API server or a host does not
 * answer. After `ms` milliseconds, `until` rejects with the message of the last error.
 */
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

/**
 * Runs a script, and runs it again if the connection breaks. If the first attempt has started a step, the step
 * continues on its host, and the next attempt waits until the step ends.
 */
export async function runOnHost(
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

/**
 * Replaces containerd. Containers continue to run, because their shims are not restarted. If the Node does not become
 * Ready with the new version, restores the previous containerd.
 */
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
    const back = await attempt(runOnHost(on, scripts.putBackScript(on.rollout, containerd)));
    const said = saidBy(back);
    const undone =
      back.code === 0
        ? `${said} was put back and started`
        : `the earlier one cannot be put back: ${said}`;
    const why = `containerd ${version} did not start: see journalctl -u containerd on the host`;
    throw new RefitError('REFIT_REFUSED', `${undone}; ${why}`, { cause });
  }
}
