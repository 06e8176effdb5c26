/** The mishaps of a run as data: a call that fails, or a process in trouble for a while. */
import { type CallPoint, type Fault, nameOf, Tape } from './call-points.ts';
import { type Lab, type RunOptions, runLab, type Verdict } from './lab-cluster.ts';
import type { Direction, LabProcesses } from './lab-processes.ts';

/**
 * cut: requests, answers or both are lost · jump: the clock of the machine is set to another time · halt: the process
 * stops, as after SIGSTOP.
 */
export type Trouble =
  | { readonly kind: 'cut'; readonly direction: Direction; readonly forS: number }
  | { readonly kind: 'halt'; readonly forS: number }
  | { readonly kind: 'jump'; readonly hours: number }
  | { readonly kind: 'crash' };

export type Mishap =
  | { readonly kind: 'call'; readonly point: string; readonly fault: Fault }
  | {
      readonly kind: 'trouble';
      readonly actor: string;
      readonly second: number;
      readonly trouble: Trouble;
    }
  | { readonly kind: 'abort'; readonly second: number };

export type Scene = Omit<RunOptions, 'tape' | 'seed' | 'everySecond'>;

export interface Played {
  readonly verdict: Verdict;
  /** Calls of the run, in order. */
  readonly points: readonly CallPoint[];
}

/** Runs the scene once, with exactly these mishaps. */
export async function play(
  scene: Scene,
  seed: number,
  mishaps: readonly Mishap[],
): Promise<Played> {
  const faults = new Map(
    mishaps.flatMap((each) => (each.kind === 'call' ? [[each.point, each.fault] as const] : [])),
  );
  const tape = new Tape((point) => faults.get(nameOf(point)));
  const everySecond = (lab: Lab, second: number): void => {
    for (const mishap of mishaps) happen(lab, second, mishap);
  };
  const verdict = await runLab({ ...scene, tape, seed, everySecond });
  return { verdict, points: tape.points };
}

function happen(lab: Lab, second: number, mishap: Mishap): void {
  if (mishap.kind === 'abort' && second === mishap.second) lab.abort();
  if (mishap.kind === 'trouble') makeTrouble(lab.processes, second, mishap);
}

/** Begins or ends the trouble of the mishap if it is due. Must be called every second. */
export function makeTrouble(
  processes: LabProcesses,
  second: number,
  mishap: Mishap & { kind: 'trouble' },
): void {
  const { actor, trouble } = mishap;
  const age = second - mishap.second;
  if (age === 0) begin(processes, actor, trouble);
  if ('forS' in trouble && age === trouble.forS) end(processes, actor, trouble);
}

function begin(processes: LabProcesses, actor: string, trouble: Trouble): void {
  switch (trouble.kind) {
    case 'cut':
      return processes.cut(actor, trouble.direction);
    case 'halt':
      return processes.halt(actor);
    case 'jump':
      return processes.jump(actor, trouble.hours * 3_600_000);
    case 'crash':
      return processes.crash(actor);
  }
}

function end(processes: LabProcesses, actor: string, { kind }: Trouble): void {
  if (kind === 'cut') processes.fix(actor);
  else processes.resume(actor);
}

/** Describes the mishap for people, short enough for one line of text. */
export function describe(mishap: Mishap): string {
  if (mishap.kind === 'call') return `${mishap.fault} at ${mishap.point}`;
  if (mishap.kind === 'abort') return `aborted in second ${mishap.second}`;
  const { actor, second, trouble } = mishap;
  return `${nameOfTrouble(trouble)}: ${actor} in second ${second}`;
}

/** The messages that get lost while a connection is cut in a direction. */
const LOST = { there: 'requests', back: 'answers', both: 'requests and answers' } as const;

export function nameOfTrouble(trouble: Trouble): string {
  switch (trouble.kind) {
    case 'cut':
      return `${LOST[trouble.direction]} are lost for ${trouble.forS} s`;
    case 'halt':
      return `the process is suspended for ${trouble.forS} s`;
    case 'jump':
      return `the clock is set ${trouble.hours > 0 ? 'forward' : 'back'} by ${Math.abs(trouble.hours)} h`;
    case 'crash':
      return 'crash';
  }
}

/** Reports whether the run ended in an allowed way, without violations. */
export function isFine({ end, reason, violations }: Verdict): boolean {
  return violations.length === 0 && (end === 'Completed' || (end !== 'stuck' && reason !== ''));
}
