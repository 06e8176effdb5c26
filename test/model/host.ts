/** The real state of one host: its files, its process, and what the supervisor does by itself. */

import type { ActiveJournal, Journal } from '../../src/agent/journal.ts';
import { isStaged } from '../../src/agent/journal.ts';
import type { ProcessId, ServiceFacts } from '../../src/agent/service/host.ts';
import { isSameProcess } from '../../src/agent/service/host.ts';
import type { Step, StepOutcome } from '../../src/agent/steps/step.ts';

/**
 * The quality of a payload. good: works · missing: cannot be downloaded · garbage: cannot be executed · dead: can be
 * executed and shows its version, but never starts as a service · impostor: shows the wanted version in the trial run,
 * and another version as a service · brief: starts as a service once, may crash while the agent watches it, and never
 * starts again after a crash.
 */
export type Quality = 'good' | 'missing' | 'garbage' | 'dead' | 'impostor' | 'brief';

/** A file, named by the version that it should have. Two files with the same name are equal, whatever their paths. */
export type File = string;

export interface Service {
  readonly id: number;
  readonly file: File;
  /** starting: the process does not answer yet · stopping: the process got SIGTERM, and still runs. */
  readonly life: 'starting' | 'up' | 'stopping';
}

export interface Host {
  /** The file at the path of the binary. */
  readonly target: File | undefined;
  readonly previous: File | undefined;
  readonly staged: File | undefined;
  /** Undefined while no process lives. */
  readonly service: Service | undefined;
  /** Files that ran as the service on this host and reached the state `up`. */
  readonly proven: readonly File[];
  /** Every complete download, in order, with the attempt for which it was made. */
  readonly fetched: readonly string[];
  /** True if the power was lost for ever. */
  readonly dark: boolean;
  /** True where pods run here that a drain evicts. */
  readonly hasPods: boolean;
}

/** The id of a new process. The process gets a number of its own before anything observes it. */
export const UNSEEN = 0;

export type Qualities = (file: File) => Quality;

export const BINARY = '/usr/local/bin/k0s';

export function freshHost(file: File, hasPods: boolean): Host {
  const service: Service = { id: 1, file, life: 'up' };
  const files = {
    target: file,
    previous: undefined,
    staged: undefined,
    proven: [file],
    fetched: [],
  };
  return { ...files, service, dark: false, hasPods };
}

/** Reports whether the service is down, starts, stops, or runs another file than the file at the path of the binary. */
export function isInMotion({ service, target }: Host): boolean {
  return service?.life !== 'up' || service.file !== target;
}

export function processOf({ id }: Pick<Service, 'id'>): ProcessId {
  return { pid: id, started: 'boot', parent: 1 };
}

/**
 * Returns what happens without a cause from outside: a stopping process ends, or the supervisor starts the file at the
 * path of the binary.
 */
export function lifeOf(host: Host, qualityOf: Qualities): { label: string; host: Host }[] {
  const { service, target } = host;
  if (host.dark) return [];
  if (!service) {
    return target === undefined
      ? []
      : [{ label: 'its supervisor starts the service', host: started(host, target) }];
  }
  if (service.life === 'stopping')
    return [{ label: 'the service ends', host: { ...host, service: undefined } }];
  if (service.life === 'up') return [];
  if (mayComeUp(host, service.file, qualityOf)) {
    const proven = [...new Set([...host.proven, service.file])].toSorted();
    return [
      {
        label: 'the service is up',
        host: { ...host, service: { ...service, life: 'up' }, proven },
      },
    ];
  }
  // The service starts and crashes again and again. The only effect that matters is that a later start uses the file at
  // the path.
  if (target === undefined || target === service.file) return [];
  return [{ label: 'its supervisor starts the service', host: started(host, target) }];
}

function mayComeUp({ proven }: Host, file: File, qualityOf: Qualities): boolean {
  const quality = qualityOf(file);
  return quality !== 'dead' && (quality !== 'brief' || !proven.includes(file));
}

/** Returns the host after a crash of the process. Its supervisor restarts the process. */
export function fallen(host: Host): Host {
  return { ...host, service: undefined };
}

function started(host: Host, file: File): Host {
  return { ...host, service: { id: UNSEEN, file, life: 'starting' } };
}

export function powerLost(host: Host): Host {
  return { ...host, service: undefined };
}

export function powerLostForGood(host: Host): Host {
  return { ...host, service: undefined, dark: true };
}

/** Returns every result that an observation by the agent may have, according to src/agent/service/observe-host.ts. */
export function factsOf(
  { service, target }: Host,
  journal: Journal,
  qualityOf: Qualities,
  ownAgentIn: (file: File) => Pick<ServiceFacts, 'ownAgent' | 'ownAgentDoubt'>,
): ServiceFacts[] {
  const silent: ServiceFacts = { binary: BINARY };
  if (!service) return [silent];
  const process = processOf(service);
  const shown = qualityOf(service.file) === 'impostor' ? 'v0.0.0' : service.file;
  const answering = {
    ...silent,
    running: { version: shown, process, current: service.file === target },
    ...ownAgentIn(service.file),
  };
  if (service.life === 'up') return [{ ...answering, service: process }];
  const seen = isFound(process, journal) ? { ...silent, service: process } : silent;
  if (service.life === 'stopping') return [seen, { ...answering, service: process }];
  return ['dead', 'brief'].includes(qualityOf(service.file)) && seen !== silent
    ? [seen, silent]
    : [seen];
}

/**
 * Reports whether the agent finds a process that does not answer. It knows the process from earlier, or it searches for
 * the process because a restart depends on it.
 */
function isFound(process: ProcessId, journal: Journal): boolean {
  if (journal.phase === 'idle' || isStaged(journal)) return false;
  const isKnown =
    isSameProcess(process, journal.process) || isSameProcess(process, journal.work.original);
  return (
    isKnown ||
    journal.phase === 'swapped' ||
    journal.phase === 'restarted' ||
    journal.phase === 'swappedBack'
  );
}

const DONE: StepOutcome = { ok: true };

/**
 * Returns the host after a step and the outcome of the step, as the comments in src/agent/steps/step.ts describe them.
 */
export function afterStep(
  step: Step,
  host: Host,
  { work }: ActiveJournal,
  qualityOf: Qualities,
): { host: Host; outcome: StepOutcome } {
  const { command, created } = work.signal;
  const { version } = command;
  switch (step.kind) {
    case 'download':
      if (host.staged === version) return { host, outcome: DONE };
      if (qualityOf(version) === 'missing') return { host, outcome: failure('404 Not Found') };
      return {
        host: { ...host, staged: version, fetched: [...host.fetched, `${version} for ${created}`] },
        outcome: DONE,
      };
    case 'trial-run':
      return {
        host,
        outcome: runs(host.staged, qualityOf) ? DONE : failure('the trial run failed'),
      };
    case 'keep-previous':
      // The step compares the content of the files.
      if (host.target === host.staged)
        return { host, outcome: failure('the wanted version already') };
      return { host: { ...host, previous: host.target }, outcome: DONE };
    case 'swap':
      return replaced(host, host.staged);
    case 'roll-back':
      return replaced(host, host.previous);
    case 'restart':
      return { host: signalled(host, step.process, 'stopping'), outcome: DONE };
    case 'kill':
      return { host: signalled(host, step.process, undefined), outcome: DONE };
    case 'clean-up':
    case 'stand-aside':
      return { host: { ...host, staged: undefined }, outcome: DONE };
    case 'snapshot-etcd':
      return {
        host,
        outcome: { ok: true, snapshot: { at: created, none: 'a model has no etcd' } },
      };
    case 'cordon-and-drain':
      return { host: { ...host, hasPods: false }, outcome: DONE };
    case 'uncordon':
    case 'soak':
    case 'fetch-bundle':
    case 'stage-upgrade':
    case 'upgrade-host':
    case 'begin':
    case 'give-up':
    case 'report':
    case 'nothing':
    case 'await-own-agent':
    case 'await-service':
    case 'await-leader':
    case 'await-clock':
      return { host, outcome: DONE };
  }
}

export function runs(file: File | undefined, qualityOf: Qualities): boolean {
  return file !== undefined && qualityOf(file) !== 'garbage';
}

export function failure(reason: string): StepOutcome {
  return { ok: false, reason };
}

function replaced(host: Host, file: File | undefined): { host: Host; outcome: StepOutcome } {
  if (file === undefined) return { host, outcome: failure('no such file') };
  return { host: { ...host, target: file }, outcome: DONE };
}

function signalled(host: Host, process: ProcessId | undefined, life: 'stopping' | undefined): Host {
  const { service } = host;
  if (!service || !isSameProcess(processOf(service), process)) return host;
  return { ...host, service: life === undefined ? undefined : { ...service, life } };
}
