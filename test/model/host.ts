/** The real state of one host: its files, its process, and what the supervisor does by itself. */

import type { ActiveJournal, Journal } from '../../src/agent/journal.ts';
import { isBundle } from '../../src/agent/journal.ts';
import type { ProcessId, ServiceFacts } from '../../src/agent/service/host.ts';
import { isSameProcess } from '../../src/agent/service/host.ts';
import type { Step, StepOutcome } from '../../src/agent/steps/step.ts';

/**
 * What a payload turns out to be: good · missing: nobody can download it · garbage: cannot be executed · dead: executes, shows its version, and never
 * comes up as a service · impostor: shows the wanted version in the trial run, and another one as a service · brief:
 * comes up once, may fall while it is watched, and never comes up again after that.
 */
export type Quality = 'good' | 'missing' | 'garbage' | 'dead' | 'impostor' | 'brief';

/** Files are named by the version they should be; a file is the same file wherever it lies. */
export type File = string;

export interface Service {
  readonly id: number;
  readonly file: File;
  /** starting: no answer yet · stopping: got SIGTERM, and still lives. */
  readonly life: 'starting' | 'up' | 'stopping';
}

export interface Host {
  /** What lies at the path of the binary. */
  readonly target: File | undefined;
  readonly previous: File | undefined;
  readonly staged: File | undefined;
  /** Undefined while no process lives. */
  readonly service: Service | undefined;
  /** Files that were once up as the service here. */
  readonly proven: readonly File[];
  /** Every whole download, in order, with the attempt that it was for. */
  readonly fetched: readonly string[];
  /** True where the power went for good. */
  readonly dark: boolean;
  /** True where pods run here that a drain evicts. */
  readonly hasPods: boolean;
}

/** The id of a process that is new: it gets a number of its own before anybody sees it. */
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

/** Down, on its way, or about to be: the file at the path is not the one that runs. */
export function isInMotion({ service, target }: Host): boolean {
  return service?.life !== 'up' || service.file !== target;
}

export function processOf({ id }: Pick<Service, 'id'>): ProcessId {
  return { pid: id, started: 'boot', parent: 1 };
}

/** What happens without anybody's doing: a process that was told to ends, and the supervisor starts what is at the path. */
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
  // It comes and goes again and again; all that matters of this is that a later start takes the file at the path.
  if (target === undefined || target === service.file) return [];
  return [{ label: 'its supervisor starts the service', host: started(host, target) }];
}

function mayComeUp({ proven }: Host, file: File, qualityOf: Qualities): boolean {
  const quality = qualityOf(file);
  return quality !== 'dead' && (quality !== 'brief' || !proven.includes(file));
}

/** As if the process had ended by itself; its supervisor starts it again. */
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

/** Everything that the agent may find when it looks, as src/agent/service/observe-host.ts looks. */
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

/** A process that does not answer is known from before, or looked for where a restart depends on it. */
function isFound(process: ProcessId, journal: Journal): boolean {
  if (journal.phase === 'idle' || isBundle(journal)) return false;
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

/** What a step does to the host, as the comments in src/agent/steps/step.ts promise, and what comes of it. */
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
      // It compares their content.
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
