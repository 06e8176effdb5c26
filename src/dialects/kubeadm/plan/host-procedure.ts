/** Runs the steps of one host in order and reports each on its Node. A later run continues after the last finished step. */
import type { Drains } from '../../../drain/running-drains.ts';
import { ownerOf, type Target } from '../../../engine/model/rollout.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { configMaps, kubeletVersionOf, type Node, nodes } from '../../../kube/resources.ts';
import {
  isConflict,
  isForbidden,
  isUnauthorized,
  StatusError,
  TransportError,
} from '../../../kube/status-error.ts';
import { rfc3339, sleep } from '../../../util/clock.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { aborted } from '../../../util/waits.ts';
import * as hostSteps from '../host/host-steps.ts';
import { etcdAnswers } from '../host/probe.ts';
import { renewCertificates } from '../host/renew-certificates.ts';
import { kubeadmBody, kubeletBody, optionsFor, stageBody } from '../host/scripts.ts';
import { controlPlanePods } from '../host/verify.ts';
import {
  type HostUpgrade,
  type HostUpgrades,
  type Report,
  reportOn,
  reportPatch,
  STEPS,
} from './kubeadm-signal.ts';
import { controlPlaneOf } from './manifest.ts';
import { type ExpectedOutages, REFUSED_MS } from './outages.ts';
import type { ApprovalParts, ApproveServing } from './serving-certificates.ts';

export interface ProcedureParts
  extends Pick<ApprovalParts, 'manifest' | 'shells' | 'clock' | 'log' | 'abort'> {
  /** Writes only while this process holds the lease. */
  readonly writer: KubeClient;
  readonly drains: Drains;
  readonly outages: ExpectedOutages;
  readonly approveServing: ApproveServing;
}

/** Milliseconds. A single API server is down for more than a minute while kubeadm replaces it, so writes are retried. */
const RETRY_MS = 1000;

export function hostUpgrades(parts: ProcedureParts): HostUpgrades {
  const running = new Map<string, ReturnType<typeof procedureOf>>();
  /** The last attempt that ended, by target: its Node may have been read before it said so. */
  const ended = new Map<string, string>();
  const stateOf = ({ key, since }: Target) =>
    ended.get(key) === since ? 'ended' : running.get(key)?.state();
  return {
    stateOf,
    isWaiting: ({ key }) => running.get(key)?.isWaiting() === true,
    begin(work) {
      const { key, name, since } = work.target;
      if (stateOf(work.target)) return Promise.resolve();
      const procedure = procedureOf(parts, work);
      running.set(key, procedure);
      void procedure
        .run()
        .then(() => ended.set(key, since))
        .catch((error: unknown) =>
          parts.log.warn('upgrade of the host stopped', { node: name, problem: messageOf(error) }),
        )
        .finally(() => running.get(key) === procedure && running.delete(key));
      return Promise.resolve();
    },
    acknowledge: ({ key }) => running.get(key)?.acknowledge(),
    async stop(target, reason) {
      if (stateOf(target) !== 'open') return;
      ended.set(target.key, target.since);
      try {
        await running.get(target.key)?.stop(reason);
      } catch (error) {
        ended.delete(target.key);
        throw error;
      }
    },
  };
}

function procedureOf(procedure: ProcedureParts, work: HostUpgrade) {
  const { manifest, drains, outages, log } = procedure;
  const { target, parts, rollout, verb } = work;
  const stopping = new AbortController();
  const abort = AbortSignal.any([procedure.abort, stopping.signal]);
  const emptied = Promise.withResolvers<void>();
  const report = reportOf(procedure, work, abort);
  let isWaiting = false;

  /** The step `Drain` in the report asks the leader to cordon and drain. */
  async function untilEmpty(): Promise<void> {
    isWaiting = true;
    await report.enter(STEPS.drain);
    const stopListening = drains.onChange((node) => {
      if (node !== target.name) return;
      reportBlockedDrain().catch((error: unknown) =>
        log.warn('could not update the drain status', {
          node: target.name,
          problem: messageOf(error),
        }),
      );
    });
    await Promise.race([emptied.promise, aborted(abort)]);
    stopListening();
    abort.throwIfAborted();
  }

  async function reportBlockedDrain(): Promise<void> {
    const state = drains.stateOf(
      target.name,
      ownerOf({ source: { uid: rollout, kind: configMaps.kind } }, target),
    );
    const message = state?.kind === 'draining' ? state.blockedBy : undefined;
    if (isWaiting && message !== report.latest().message) await report.add({ message });
  }

  async function upgrade(): Promise<void> {
    const on = stepsOn(procedure, work, abort);
    const { host } = on;
    const kubeadm = kubeadmBody(verb, host.role, optionsFor(manifest, host));
    await stage(on, report);
    if (parts.includes('kubelet')) await untilEmpty();
    await replaceContainerd(on, report);
    for (const part of parts) {
      if (part !== 'kubelet') await hostSteps.untilEtcdIsHealthy(on);
      if (part !== 'kubelet' && host.role === 'controlPlane') outages.begin(target.name);
      await report.enter(STEPS[part], { touched: true });
      if (part === 'certificates') await renewCertificates(on);
      else
        await hostSteps.carryOut(
          on,
          part,
          part === 'kubeadm' ? kubeadm : kubeletBody(manifest.binaries),
        );
    }
    await report.enter(STEPS.verify);
    await hostSteps.untilVerified(on);
    if (parts.includes('kubelet')) await on.approveServing([host]);
    await report.enter(STEPS.verify, { state: 'finished' });
  }

  return {
    /** Until the drain is done, from before the Node asks for it. */
    isWaiting: () => isWaiting,
    state: () => stateIn(report.latest()),
    acknowledge(): void {
      isWaiting = false;
      emptied.resolve();
    },
    async stop(reason: string): Promise<void> {
      stopping.abort(new Error(reason));
      await report.add({ state: 'failed', message: reason }, procedure.abort);
    },
    /** Rejects if it was stopped, or if the report could not be written. */
    async run(): Promise<void> {
      try {
        await upgrade();
      } catch (error) {
        if (abort.aborted) throw error;
        const { step } = report.latest();
        const isPossible =
          parts.includes('kubelet') && (step === STEPS.kubelet || step === STEPS.verify);
        const undone = isPossible ? await hostSteps.rollBack(stepsOn(procedure, work, abort)) : '';
        await report.enter(step, { state: 'failed', message: `${messageOf(error)}${undone}` });
      } finally {
        outages.end(target.name);
      }
    },
  };
}

function stateIn({ state, touched }: Report) {
  if (state !== 'working') return 'ended';
  return touched === true ? 'busy' : 'open';
}

/** Certificates need no binaries. */
async function stage(
  on: ReturnType<typeof stepsOn>,
  report: ReturnType<typeof reportOf>,
): Promise<void> {
  if (on.parts.includes('certificates')) return;
  await report.enter(STEPS.stage);
  await hostSteps.carryOut(on, 'stage', stageBody(on.manifest));
}

/** Where the host was drained: a new kubelet may need it. */
async function replaceContainerd(
  on: ReturnType<typeof stepsOn>,
  report: ReturnType<typeof reportOf>,
): Promise<void> {
  const { containerd } = on.manifest;
  if (!containerd || !on.parts.includes('kubelet')) return;
  await report.enter(STEPS.containerd, { touched: true });
  await hostSteps.upgradeContainerd(on, containerd);
}

function stepsOn(procedure: ProcedureParts, work: HostUpgrade, abort: AbortSignal) {
  const { manifest, shells, writer } = procedure;
  const { name } = work.target;
  const host = manifest.hosts.find((each) => each.name === name);
  const missing = `hosts: ${name} is missing, but the upgrade needs it; add it to the manifest again`;
  if (!host) throw new RefitError('REFIT_FILE', missing);
  return {
    ...procedure,
    ...work,
    host,
    abort,
    members: async () => await etcdAnswers(shells, controlPlaneOf(manifest)),
    node: async () => await writer.get(nodes, name),
    pods: async () => await controlPlanePods(writer),
  };
}

/** The report on the Node, which this process alone writes. What the Node says may be older. */
function reportOf(
  { writer, clock, log }: ProcedureParts,
  { target, rollout }: HostUpgrade,
  abort: AbortSignal,
) {
  const { key, name, since } = target;
  let report: Report = {
    rollout,
    target: key,
    attempt: since,
    state: 'working',
    step: '',
    since,
    spent: {},
  };
  let began = clock.monotonic();
  let written: Promise<void> = Promise.resolve();
  let found: ReturnType<typeof foundOn> | undefined;

  /** One write after the other, so that the last report wins. */
  async function add(more: Partial<Report>, until = abort): Promise<void> {
    report = { ...report, ...more };
    const added = report;
    const earlier = written.catch(() => undefined);
    written = earlier.then(async () => await write(added, until));
    await written;
  }

  /** Retries: API server and lease are unavailable while kubeadm replaces the API server. A failure must arrive. */
  async function write(added: Report, until: AbortSignal): Promise<void> {
    let refusedAt = Number.POSITIVE_INFINITY;
    for (;;) {
      until.throwIfAborted();
      try {
        found ??= foundOn(await writer.get(nodes, name), added);
        await writer.patch(nodes, name, reportPatch({ ...found, ...added }), { type: 'merge' });
        return;
      } catch (error) {
        const isRefused = isUnauthorized(error) || isForbidden(error);
        const isBusy = error instanceof StatusError && (error.code >= 500 || error.code === 429);
        if (!(error instanceof TransportError) && !isConflict(error) && !isBusy && !isRefused)
          throw error;
        const problem = messageOf(error);
        if (isRefused && refusedAt === Number.POSITIVE_INFINITY)
          log.warn('the API server refuses the report of the host, retrying', {
            node: name,
            problem,
          });
        refusedAt = isRefused ? Math.min(refusedAt, clock.monotonic()) : Number.POSITIVE_INFINITY;
        if (added.state !== 'failed' && clock.monotonic() - refusedAt >= REFUSED_MS) throw error;
        await sleep(clock, RETRY_MS, until);
      }
    }
  }

  return {
    latest: () => report,
    add,
    async enter(
      step: string,
      more: Partial<Pick<Report, 'state' | 'message' | 'touched'>> = {},
    ): Promise<void> {
      const now = clock.monotonic();
      const spent =
        report.step === '' ? {} : { ...report.spent, [report.step]: Math.round(now - began) };
      began = now;
      await add({ step, since: rfc3339(clock.now()), spent, message: undefined, ...more });
    },
  };
}

/** Version and `touched` of an earlier attempt that was killed stay valid. */
function foundOn(node: Node, { rollout, target }: Report) {
  const earlier = reportOn(node);
  const isSame = earlier?.rollout === rollout && earlier.target === target;
  return {
    from: (isSame ? earlier.from : undefined) ?? kubeletVersionOf(node),
    ...(isSame && earlier.touched ? { touched: true } : {}),
  };
}
