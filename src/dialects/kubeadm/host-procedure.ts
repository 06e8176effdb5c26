/** Runs the steps of one host in order and reports each on its Node. A later run continues after the last finished step. */
import type { Drains } from '../../drain/running-drains.ts';
import { ownerOf } from '../../engine/model/rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import { configMaps, kubeletVersionOf, type Node, nodes } from '../../kube/resources.ts';
import { isConflict, isForbidden, isUnauthorized, StatusError, TransportError } from '../../kube/status-error.ts';
import type { Part, Shells } from '../../kubeadm/host.ts';
import * as hostSteps from '../../kubeadm/host-steps.ts';
import { etcdAnswers } from '../../kubeadm/probe.ts';
import { kubeadmBody, kubeletBody, optionsFor, stageBody } from '../../kubeadm/scripts.ts';
import { controlPlanePods } from '../../kubeadm/verify.ts';
import { rfc3339, sleep } from '../../util/clock.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { aborted } from '../../util/waits.ts';
import { controlPlaneOf, type Manifest, type ManifestHost } from './manifest.ts';
import { type ExpectedOutages, REFUSED_MS } from './outages.ts';
import { DRAIN, type HostUpgrade, type HostUpgrades, type Report, reportOn, reportPatch, STAGE } from './signal.ts';

export interface ProcedureParts extends Pick<Tools, 'clock' | 'log'> {
  readonly manifest: Manifest;
  readonly shells: Shells;
  /** Writes only while this process holds the lease. */
  readonly writer: KubeClient;
  readonly drains: Drains;
  readonly outages: ExpectedOutages;
  readonly abort: AbortSignal;
}

/** Milliseconds. A single API server is down for more than a minute while kubeadm replaces it, so writes are retried. */
const RETRY_MS = 1000;
const PART_STEPS: Readonly<Record<Part, string>> = { kubeadm: 'Kubeadm', kubelet: 'Kubelet' };
const VERIFY = 'Verify';

export function hostUpgrades(parts: ProcedureParts): HostUpgrades {
  const running = new Map<string, Procedure>();
  return {
    isAt: ({ key }) => running.has(key),
    isWaiting: ({ key }) => running.get(key)?.isWaiting === true,
    begin(work) {
      const { key, name } = work.target;
      if (running.has(key)) return Promise.resolve();
      const procedure = new Procedure(parts, work);
      running.set(key, procedure);
      void procedure
        .run()
        .catch((error: unknown) =>
          parts.log.warn('upgrade of the host stopped', { node: name, problem: messageOf(error) }),
        )
        .finally(() => running.get(key) === procedure && running.delete(key));
      return Promise.resolve();
    },
    acknowledge: ({ key }) => running.get(key)?.acknowledge(),
    async stop({ key }, reason) {
      const procedure = running.get(key);
      if (procedure?.isTouched) return;
      running.delete(key);
      await procedure?.stop(reason);
    },
  };
}

class Procedure {
  readonly #parts: ProcedureParts;
  readonly #work: HostUpgrade;
  readonly #stopping = new AbortController();
  readonly #abort: AbortSignal;
  readonly #emptied = Promise.withResolvers<void>();
  /** True until the drain is done, from before the Node asks for it. */
  isWaiting = false;
  #report: Report;
  #began: number;
  #written: Promise<void> = Promise.resolve();
  #found: Found | undefined;

  constructor(parts: ProcedureParts, work: HostUpgrade) {
    this.#parts = parts;
    this.#work = work;
    this.#abort = AbortSignal.any([parts.abort, this.#stopping.signal]);
    const { key: target, since: attempt } = work.target;
    const { rollout } = work;
    this.#began = parts.clock.monotonic();
    this.#report = { rollout, target, attempt, state: 'working', step: '', since: attempt, spent: {} };
  }

  get isTouched(): boolean {
    return this.#report.touched === true;
  }

  async run(): Promise<void> {
    const { manifest, outages } = this.#parts;
    const { parts, verb, target } = this.#work;
    try {
      await this.#enter(STAGE);
      await hostSteps.carryOut(this.#steps, 'stage', stageBody(manifest.binaries));
      if (parts.includes('kubelet')) await this.#untilEmpty();
      for (const part of parts) {
        if (part === 'kubeadm') await hostSteps.untilEtcdIsHealthy(this.#steps);
        if (part === 'kubeadm' && this.#host.role === 'controlPlane') outages.begin(target.name);
        await this.#enter(PART_STEPS[part], { touched: true });
        const host = this.#host;
        const body =
          part === 'kubeadm'
            ? kubeadmBody(verb, host.role, optionsFor(manifest, host))
            : kubeletBody(manifest.binaries);
        await hostSteps.carryOut(this.#steps, part, body);
      }
      await this.#enter(VERIFY);
      await hostSteps.untilVerified(this.#steps);
      await this.#enter(VERIFY, { state: 'finished' });
    } catch (error) {
      if (this.#abort.aborted) throw error;
      const message = `${messageOf(error)}${await this.#rollBack()}`;
      await this.#enter(this.#report.step, { state: 'failed', message });
    } finally {
      outages.end(target.name);
    }
  }

  acknowledge(): void {
    this.isWaiting = false;
    this.#emptied.resolve();
  }

  async stop(reason: string): Promise<void> {
    const { abort } = this.#parts;
    this.#stopping.abort(new Error(reason));
    await this.#save({ ...this.#report, state: 'failed', message: reason }, abort);
  }

  /** The step DRAIN in the report asks the leader to cordon and drain. */
  async #untilEmpty(): Promise<void> {
    const { drains, log } = this.#parts;
    const { name } = this.#work.target;
    this.isWaiting = true;
    await this.#enter(DRAIN);
    const stopListening = drains.onChange((node) => {
      if (node !== name) return;
      this.#reportBlockedDrain().catch((error: unknown) =>
        log.warn('could not update the drain status', { node: name, problem: messageOf(error) }),
      );
    });
    await Promise.race([this.#emptied.promise, aborted(this.#abort)]);
    stopListening();
    this.#abort.throwIfAborted();
  }

  async #reportBlockedDrain(): Promise<void> {
    const { rollout: uid, target } = this.#work;
    const state = this.#parts.drains.stateOf(target.name, ownerOf({ source: { uid, kind: configMaps.kind } }, target));
    const message = state?.kind === 'draining' ? state.blockedBy : undefined;
    if (!this.isWaiting || message === this.#report.message) return;
    this.#report = { ...this.#report, message };
    await this.#save(this.#report, this.#abort);
  }

  /** A kubelet that does not come up is replaced by the one before. Says what became of it. */
  async #rollBack(): Promise<string> {
    const isPossible = this.#work.parts.includes('kubelet') && [PART_STEPS.kubelet, VERIFY].includes(this.#report.step);
    return isPossible ? await hostSteps.rollBack(this.#steps) : '';
  }

  get #steps(): hostSteps.HostStepsParts {
    const { manifest, shells, writer, clock, log } = this.#parts;
    const { rollout, version, parts, target } = this.#work;
    const [host, abort] = [this.#host, this.#abort];
    return {
      host,
      shells,
      rollout,
      version,
      parts,
      clock,
      log,
      abort,
      members: async () => await etcdAnswers(shells, controlPlaneOf(manifest)),
      node: async () => await writer.get(nodes, target.name),
      pods: async () => await controlPlanePods(writer),
    };
  }

  get #host(): ManifestHost {
    const { name } = this.#work.target;
    const host = this.#parts.manifest.hosts.find((each) => each.name === name);
    const missing = `hosts: ${name} is missing, but the upgrade needs it; add it to the manifest again`;
    if (!host) throw new RefitError('REFIT_FILE', missing);
    return host;
  }

  async #enter(step: string, more: Partial<Pick<Report, 'state' | 'message' | 'touched'>> = {}): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const last = this.#report;
    const spent = last.step === '' ? {} : { ...last.spent, [last.step]: Math.round(now - this.#began) };
    this.#began = now;
    this.#report = { ...last, step, since: rfc3339(clock.now()), spent, message: undefined, ...more };
    await this.#save(this.#report, this.#abort);
  }

  /** One write after the other, so that the last report wins. */
  async #save(report: Report, abort: AbortSignal): Promise<void> {
    const earlier = this.#written.catch(() => undefined);
    this.#written = earlier.then(async () => await this.#write(report, abort));
    await this.#written;
  }

  /** Retries: API server and lease are unavailable while kubeadm replaces the API server. A failure must arrive. */
  async #write(report: Report, abort: AbortSignal): Promise<void> {
    const { writer, clock, log } = this.#parts;
    const { name } = this.#work.target;
    let refusedAt = Number.POSITIVE_INFINITY;
    for (;;) {
      abort.throwIfAborted();
      try {
        this.#found ??= foundOn(await writer.get(nodes, name), report);
        await writer.patch(nodes, name, reportPatch({ ...this.#found, ...report }), { type: 'merge' });
        return;
      } catch (error) {
        const isRefused = isUnauthorized(error) || isForbidden(error);
        const isBusy = error instanceof StatusError && (error.code >= 500 || error.code === 429);
        if (!(error instanceof TransportError) && !isConflict(error) && !isBusy && !isRefused) throw error;
        if (isRefused && refusedAt === Number.POSITIVE_INFINITY)
          log.warn('the API server refuses the report of the host, retrying', {
            node: name,
            problem: messageOf(error),
          });
        refusedAt = isRefused ? Math.min(refusedAt, clock.monotonic()) : Number.POSITIVE_INFINITY;
        if (report.state !== 'failed' && clock.monotonic() - refusedAt >= REFUSED_MS) throw error;
        await sleep(clock, RETRY_MS, abort);
      }
    }
  }
}

type Found = Pick<Report, 'from' | 'touched'>;

/** Version and `touched` of an earlier attempt that was killed stay valid. */
function foundOn(node: Node, { rollout, target }: Report): Found {
  const earlier = reportOn(node);
  const isSame = earlier?.rollout === rollout && earlier.target === target;
  return {
    from: (isSame ? earlier.from : undefined) ?? kubeletVersionOf(node),
    ...(isSame && earlier.touched ? { touched: true } : {}),
  };
}
