/** Runs the steps of one host in order and reports each step on the Node. A later run continues after the last finished step. */
import type { Drains } from '../../../drain/running-drains.ts';
import { ownerOf, type Target } from '../../../engine/model/rollout.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { configMaps, nodes } from '../../../kube/resources.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { aborted } from '../../../util/waits.ts';
import * as hostSteps from '../host/host-steps.ts';
import { etcdAnswers } from '../host/probe.ts';
import { renewCertificates } from '../host/renew-certificates.ts';
import { binariesFor, kubeadmBody, kubeletBody, optionsFor, stageBody } from '../host/scripts.ts';
import { rollBackStaticPods } from '../host/static-pods-back.ts';
import { STEPS } from '../host/step-names.ts';
import { controlPlanePods } from '../host/verify.ts';
import { type HostReport, hostReport } from './host-report.ts';
import type { HostUpgrade, HostUpgrades, Report } from './kubeadm-signal.ts';
import { controlPlaneOf, type ManifestHost } from './manifest.ts';
import type { ExpectedOutages } from './outages.ts';
import type { ApprovalParts, ApproveServing } from './serving-certificates.ts';

export interface ProcedureParts
  extends Pick<ApprovalParts, 'manifest' | 'shells' | 'clock' | 'log' | 'abort'> {
  /** The client for all writes. It writes only while this process holds the lease. */
  readonly writer: KubeClient;
  readonly drains: Drains;
  readonly outages: ExpectedOutages;
  readonly approveServing: ApproveServing;
}

export function hostUpgrades(parts: ProcedureParts): HostUpgrades {
  const running = new Map<string, Procedure>();
  /**
   * The `since` of the last attempt that ended, by the key of the target. This map is needed because the Node may have
   * been read before its report contained the end.
   */
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
          parts.log.warn('work on the host stopped', { node: name, problem: messageOf(error) }),
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

/** The work of this process on one host. */
interface Procedure {
  /** Returns true from the time just before the Node requests the drain until the drain is done. */
  isWaiting(): boolean;
  state(): 'open' | 'busy' | 'ended';
  /** Informs the procedure that the node is drained. */
  acknowledge(): void;
  /** Ends the procedure. Resolves after the reason is written to the Node. */
  stop(reason: string): Promise<void>;
  /** Runs all steps. Rejects if it was stopped, or if the report could not be written. */
  run(): Promise<void>;
}

function procedureOf(procedure: ProcedureParts, work: HostUpgrade): Procedure {
  const { drains, outages, log } = procedure;
  const { target, rollout } = work;
  const stopping = new AbortController();
  const abort = AbortSignal.any([procedure.abort, stopping.signal]);
  const emptied = Promise.withResolvers<void>();
  const report = hostReport(procedure, work, abort);
  let isWaiting = false;

  /**
   * Begins the step `Drain` in the report, and waits until the node is drained. When the leader sees this step in the
   * report, it cordons and drains the node.
   */
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
    const message =
      state?.kind === 'draining'
        ? (state.blockedBy ?? state.waitingFor ?? state.detaching)
        : undefined;
    if (isWaiting && message !== report.latest().message) await report.add({ message });
  }

  return {
    isWaiting: () => isWaiting,
    state: () => stateIn(report.latest()),
    acknowledge() {
      isWaiting = false;
      emptied.resolve();
    },
    async stop(reason) {
      stopping.abort(new Error(reason));
      await report.add({ state: 'failed', message: reason }, procedure.abort);
    },
    async run() {
      try {
        await upgradeHost(stepsOn(procedure, work, abort), report, untilEmpty);
      } catch (error) {
        if (abort.aborted) throw error;
        const { step } = report.latest();
        const isReplaced = step === STEPS.kubelet || step === STEPS.verify;
        const undone = isReplaced ? await rollBackHost(stepsOn(procedure, work, abort), step) : '';
        await report.enter(step, { state: 'failed', message: `${messageOf(error)}${undone}` });
      } finally {
        outages.end(target.name);
      }
    },
  };
}

/** Carries out all steps of one host. `untilEmpty` resolves when the node is drained. */
async function upgradeHost(
  on: HostSteps,
  report: HostReport,
  untilEmpty: () => Promise<void>,
): Promise<void> {
  const { host, manifest, parts, outages } = on;
  const kubeadm = kubeadmBody(on.verb, host.role, optionsFor(manifest, host));
  await stage(on, report);
  if (parts.includes('kubelet')) await untilEmpty();
  await replaceContainerd(on, report);
  for (const part of parts) {
    if (part !== 'kubelet') await hostSteps.untilEtcdIsHealthy(on);
    if (part !== 'kubelet' && host.role === 'controlPlane') outages.begin(on.target.name);
    await report.enter(STEPS[part], { touched: true });
    if (part === 'certificates') await renewCertificates(on);
    else
      await hostSteps.carryOut(
        on,
        part,
        part === 'kubeadm' ? kubeadm : kubeletBody(binariesFor(manifest, host)),
      );
  }
  await report.enter(STEPS.verify);
  await hostSteps.untilVerified({
    ...on,
    // The step does not wait until the message is written, because the API server may not answer until the kubelet
    // runs.
    tell: (message) => void report.add({ message }).catch(() => undefined),
  });
  if (parts.includes('kubelet')) await on.approveServing([host]);
  await report.enter(STEPS.verify, { state: 'finished' });
}

/** Rolls back the parts that do not work. Resolves with a clause about the result for the end of a message. */
async function rollBackHost(on: HostSteps, step: string): Promise<string> {
  // A static pod may still restart until the verification begins. So the static pods are rolled back only if the failed
  // step is the verification.
  const ofPods = step === STEPS.verify ? await rollBackStaticPods(on) : '';
  const ofKubelet = on.parts.includes('kubelet') ? await hostSteps.rollBack(on) : '';
  return `${ofPods}${ofKubelet}`;
}

function stateIn({ state, touched }: Report): 'open' | 'busy' | 'ended' {
  if (state !== 'working') return 'ended';
  return touched === true ? 'busy' : 'open';
}

/** Stages the binaries. Does nothing for a renewal of certificates, because it needs no binaries. */
async function stage(on: HostSteps, report: HostReport): Promise<void> {
  if (on.parts.includes('certificates')) return;
  await report.enter(STEPS.stage);
  const { manifest, host } = on;
  const binaries = binariesFor(manifest, host);
  await hostSteps.carryOut(on, 'stage', stageBody({ ...manifest, binaries }));
}

/** Replaces containerd after the drain and before the kubelet, because a new kubelet may need a new containerd. */
async function replaceContainerd(on: HostSteps, report: HostReport): Promise<void> {
  const { containerd } = on.manifest;
  if (!containerd || !on.parts.includes('kubelet')) return;
  await report.enter(STEPS.containerd, { touched: true });
  await hostSteps.upgradeContainerd(on, containerd);
}

interface HostSteps extends ProcedureParts, HostUpgrade, hostSteps.HostStepsParts {
  readonly host: ManifestHost;
}

/** Returns the values that the steps of one host need. Throws REFIT_FILE if the manifest does not contain the host. */
function stepsOn(procedure: ProcedureParts, work: HostUpgrade, abort: AbortSignal): HostSteps {
  const { manifest, shells, writer } = procedure;
  const { name } = work.target;
  const host = manifest.hosts.find((each) => each.name === name);
  const missing = `hosts: ${name} is missing, but the plan needs it; add it to the manifest again`;
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
