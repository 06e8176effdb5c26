/**
 * Hosts of kubeadm in one process. They do what `HostUpgrades` asks for in virtual time, and report on their Nodes as
 * the real ones do.
 */

import { STEPS } from '../../../src/dialects/kubeadm/host/step-names.ts';
import {
  type HostUpgrade,
  type HostUpgrades,
  type Report,
  reportPatch,
} from '../../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import type { Target } from '../../../src/engine/model/rollout.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { type Crew, failureOn } from './crew.ts';
import type { Scenery } from './lab.ts';

/** The seconds that each step takes. */
const STEP_SECONDS = 4;

interface Work {
  readonly order: HostUpgrade;
  readonly from: string;
  readonly attempt: string;
  step: string;
  /** The time at which the step began, in milliseconds since the Unix epoch. */
  since: number;
  isDrained: boolean;
  state: Report['state'];
}

/** Reports whether the work has changed the host. As in the real procedure, a drain changes nothing on the host itself. */
function isTouched({ step }: Pick<Work, 'step'>): boolean {
  return step !== STEPS.stage && step !== STEPS.drain;
}

export class VirtualHosts implements HostUpgrades {
  readonly #work = new Map<string, Work>();
  readonly #scenery: Scenery;
  readonly #stuck: ReadonlySet<string>;

  /** The kubelets of the hosts in `stuck` still run the earlier version after their restart. */
  constructor(scenery: Scenery, stuck: ReadonlySet<string> = new Set()) {
    this.#scenery = scenery;
    this.#stuck = stuck;
  }

  stateOf({ key, since }: Target): ReturnType<HostUpgrades['stateOf']> {
    const work = this.#work.get(key);
    if (work === undefined) return undefined;
    // As in the real procedure, an attempt that has ended says nothing about a later attempt.
    if (work.state !== 'working') return work.attempt === since ? 'ended' : undefined;
    return isTouched(work) ? 'busy' : 'open';
  }

  isWaiting({ key }: Target): boolean {
    const work = this.#work.get(key);
    return work?.step === STEPS.drain && !work.isDrained;
  }

  async begin(order: HostUpgrade): Promise<void> {
    const known = this.#work.get(order.target.key);
    if (known?.state === 'working' && known.order.rollout === order.rollout) return;
    const { truth, stage } = this.#scenery;
    const work: Work = {
      order,
      from: truth.runs.get(order.target.name) ?? '',
      attempt: order.target.since,
      step: STEPS.stage,
      since: stage.clock.now(),
      isDrained: false,
      state: 'working',
    };
    this.#work.set(order.target.key, work);
    await this.#report(work);
  }

  acknowledge({ key }: Target): void {
    const work = this.#work.get(key);
    if (work) work.isDrained = true;
  }

  async stop({ key }: Target, reason: string): Promise<void> {
    const work = this.#work.get(key);
    if (work?.state !== 'working' || isTouched(work)) return;
    work.state = 'failed';
    await this.#report(work, reason);
  }

  /** Forgets all work, as if the process that does the work had been killed. */
  forget(): void {
    this.#work.clear();
  }

  /** Lets each host do what is due. */
  async tick(crew: Crew): Promise<void> {
    const { stage } = this.#scenery;
    for (const work of this.#work.values()) {
      const { name } = work.order.target;
      const isDue = stage.clock.now() - work.since >= STEP_SECONDS * 1000;
      const waits = work.step === STEPS.drain && !work.isDrained;
      if (work.state === 'working' && isDue && !waits && !crew.silent.has(name))
        await this.#advance(work, crew);
    }
  }

  async #advance(work: Work, crew: Crew): Promise<void> {
    const { target, version, parts } = work.order;
    const { truth, stage } = this.#scenery;
    const steps: string[] = [
      STEPS.stage,
      ...(parts.includes('kubelet') ? [STEPS.drain] : []),
      ...(parts.includes('kubeadm') ? [STEPS.kubeadm] : []),
      ...(parts.includes('kubelet') ? [STEPS.kubelet] : []),
      STEPS.verify,
    ];
    const why = failureOn(this.#scenery, crew, target.name);
    if (why !== undefined) {
      work.state = 'failed';
      return await this.#report(work, why);
    }
    if (work.step === STEPS.verify && this.#stuck.has(target.name)) {
      work.state = 'failed';
      return await this.#report(work, `kubelet: the Node reports ${work.from}`);
    }
    if (work.step === STEPS.kubelet && !this.#stuck.has(target.name)) {
      truth.runs.set(target.name, version);
      const status = { nodeInfo: { kubeletVersion: version } };
      const options = { type: 'merge', subresource: 'status' } as const;
      await stage.client.patch(nodes, target.name, { status }, options);
    }
    const next = steps[steps.indexOf(work.step) + 1];
    work.since = stage.clock.now();
    if (next === undefined) work.state = 'finished';
    else work.step = next;
    await this.#report(work);
  }

  async #report(work: Work, message?: string): Promise<void> {
    const { order, from, attempt, step, since, state } = work;
    const { truth, stage } = this.#scenery;
    if (truth.lost.has(order.target.name)) return;
    const report: Report = {
      rollout: order.rollout,
      target: order.target.key,
      attempt,
      state,
      step,
      since: rfc3339(since),
      from,
      touched: isTouched(work),
      spent: {},
      ...(message === undefined ? {} : { message }),
    };
    await stage.client.patch(nodes, order.target.name, reportPatch(report), { type: 'merge' });
  }
}
