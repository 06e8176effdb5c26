/** Observes the hosts and objects of a run from outside, and finds violations. */
import type { ApiServer } from '../../../sandbox/api-server/api-server.ts';
import type { Plan } from '../../../src/api/autopilot/plan.ts';
import { cordonOwner, pendingOwner } from '../../../src/drain/cordon-marks.ts';
import type { KubeObject, Node, Pod } from '../../../src/kube/resources.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { SIGNAL_STATUSES } from '../../../src/signal/names.ts';
import { V2 } from '../../model/configure.ts';
import { isInMotion } from '../../model/host.ts';
import type { LabHost } from './lab-host.ts';
import { toldBy, untruths, wholePlan } from './told-record.ts';

export interface Watched {
  readonly server: ApiServer;
  readonly controllers: readonly LabHost[];
  readonly workers: readonly LabHost[];
  readonly concurrent: number;
  readonly hasBundles: boolean;
}

const OVER = ['Completed', 'Failed', 'FailedDownload'];

export class LabObserver {
  readonly #watched: Watched;
  readonly #violations = new Set<string>();
  /** The latest status that was observed, by node and signal. */
  readonly #progress = new Map<string, number>();
  /** The signals that were observed, by node and kind of command. */
  readonly #attempts = new Map<string, Set<string>>();

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get violations(): readonly string[] {
    return [...this.#violations];
  }

  get plan(): Plan | undefined {
    return wholePlan(this.#watched.server);
  }

  /** Must be called at each change of a host. */
  lookAtHosts(): void {
    const { controllers, workers, concurrent, hasBundles } = this.#watched;
    const moving = (hosts: readonly LabHost[]): LabHost[] =>
      hosts.filter(({ state }) => isInMotion(state));
    this.#hold(moving(controllers).length <= 1, 'one-controller-in-motion');
    this.#hold(moving(workers).length <= concurrent, 'concurrent-workers');
    const areDone = controllers.every(({ state }) => state.service?.file === V2);
    this.#hold(moving(workers).length === 0 || areDone, 'controllers-before-workers');
    for (const { name, state, bundles } of workers) {
      const isFirst = bundles.has(V2) || (state.target !== V2 && state.service?.file !== V2);
      this.#hold(!hasBundles || isFirst, `bundle-before-update: ${name}`);
      const isSwapped = state.service !== undefined && state.service.file !== state.target;
      this.#hold(!isSwapped || this.#podsOn(name) === 0, `emptied-before-swap: ${name}`);
      this.#hold(
        !isSwapped || this.#nodeOf(name)?.spec?.unschedulable === true,
        `closed-while-swapped: ${name}`,
      );
    }
    for (const { name, state } of [...controllers, ...workers]) {
      this.#hold(new Set(state.fetched).size === state.fetched.length, `downloaded-once: ${name}`);
      this.#hold(state.target !== undefined, `runnable-binary: ${name}`);
    }
  }

  /** Must be called with each version of an object that carries signals. */
  lookAtObject({ metadata: { name, annotations } }: KubeObject): void {
    const signal = decodeSignal(annotations);
    if (!signal) return;
    const { kind } = signal.command;
    const target = toldBy(this.plan).find((told) => told.name === name && told.kind === kind);
    this.#hold(
      target !== undefined && target.state !== 'SignalPending',
      `intent-before-signal: ${name}`,
    );
    const attempts = this.#attempts.get(`${name} ${kind}`) ?? new Set();
    this.#attempts.set(`${name} ${kind}`, attempts.add(signal.created));
    this.#hold(attempts.size === 1, `signalled-once: ${name} ${kind}`);
    const status = signal.status?.status;
    const step = ['', ...SIGNAL_STATUSES].indexOf(status ?? '');
    const key = `${name} ${signal.created}`;
    if (step < 0) return;
    this.#hold(step >= (this.#progress.get(key) ?? 0), `forward-only: ${name} ${status}`);
    this.#progress.set(key, step);
  }

  /** The state of the plan once it has ended. */
  get end(): string | undefined {
    const { state = '' } = this.plan?.status ?? {};
    return state === '' || state.startsWith('Schedulable') ? undefined : state;
  }

  get reason(): string {
    const told = (this.plan?.status?.commands ?? []).flatMap(
      ({ description }) => description ?? [],
    );
    return told.join('; ');
  }

  /** Returns what is left after the run; empty if everything is idle. */
  leftovers(): string[] {
    const { controllers, workers, server, hasBundles } = this.#watched;
    const objects = [
      ...server.objects('autopilot.k0sproject.io', 'controlnodes'),
      ...server.objects('', 'nodes'),
    ];
    const left: string[] = [];
    for (const object of objects) {
      const { name, annotations } = object.metadata;
      const signal = decodeSignal(annotations);
      if (signal && !OVER.includes(signal.status?.status ?? '')) left.push(`signal on ${name}`);
      if (cordonOwner(object) !== undefined) left.push(`cordon on ${name}`);
      if (pendingOwner(object) !== undefined) left.push(`taint on ${name}`);
    }
    for (const { name, state } of [...controllers, ...workers]) {
      if (isInMotion(state)) left.push(`${name} in motion`);
      if (this.end === 'Completed' && state.service?.file !== V2)
        left.push(`${name} runs ${state.service?.file}`);
    }
    const told = toldBy(this.plan);
    left.push(...untruths(told, 'k0supdate', [...controllers, ...workers]));
    left.push(...untruths(told, 'airgapupdate', hasBundles ? workers : []));
    return left;
  }

  #nodeOf(name: string): Node | undefined {
    return this.#watched.server.objects('', 'nodes').find(({ metadata }) => metadata.name === name);
  }

  #podsOn(name: string): number {
    const pods = this.#watched.server.objects('', 'pods') as readonly Pod[];
    return pods.filter(
      ({ spec, metadata }) => spec?.nodeName === name && !metadata.deletionTimestamp,
    ).length;
  }

  #hold(holds: boolean, invariant: string): void {
    if (!holds) this.#violations.add(invariant);
  }
}
