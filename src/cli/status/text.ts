/** Owns `refit status` as text for people: what runs, where, since when, what it waits for, and what comes next. */
import { styleText } from 'node:util';
import type { TargetPhase } from '../../engine/model.ts';
import { formatDuration } from '../../util/duration.ts';
import { table } from '../table.ts';
import type { PlanView, StageView, TargetView } from './view.ts';

type Style = Parameters<typeof styleText>[0];
/** Colours a word, or leaves it as it is where nobody looks at a terminal. */
export type Paint = (style: Style, text: string) => string;

export const paintForTerminal: Paint = (style, text) => styleText(style, text, { validateStream: false });
export const paintPlain: Paint = (_style, text) => text;

const COLOURS: Readonly<Record<string, Style>> = { done: 'green', failed: 'red', incomplete: 'red', invalid: 'red' };
const MOVING: ReadonlySet<TargetPhase> = new Set(['intended', 'signalled', 'working', 'verifying']);
const BAD: ReadonlySet<TargetPhase> = new Set(['failed', 'missing', 'unsupported']);

export function renderPlan(view: PlanView, now: number, paint: Paint): string[] {
  const title = `${view.kind} ${view.name}${view.id ? ` (${view.id})` : ''}`;
  return [
    `${paint('bold', title)}  ${paint(COLOURS[view.phase] ?? 'cyan', view.phase)}${versionsOf(view)}`,
    ...(view.reason ? [`  ${paint('red', view.reason)}`] : []),
    ...view.stages.filter(({ targets }) => targets.length > 0).map((stage) => `  ${stageLine(stage, paint)}`),
    ...indented('now', movingLines(view, now)),
    ...indented('waits', waitLines(view, now)),
    ...indented('next', view.next.length > 0 ? [view.next.join(', ')] : []),
  ];
}

/** One line for each target, for `-o wide`. */
export function renderTargets(view: PlanView, now: number): string[] {
  const rows = view.stages.flatMap(({ role, version, targets }) =>
    targets.map(({ name, phase, step, since, from, failure }) => [
      name,
      role,
      step ?? phase,
      since === '' ? '' : formatDuration(now - Date.parse(since)),
      from ?? '',
      version,
      failure ?? '',
    ]),
  );
  return table(['TARGET', 'ROLE', 'STEP', 'SINCE', 'FROM', 'TO', 'REASON'], rows);
}

function versionsOf({ stages }: PlanView): string {
  const versions = [...new Set(stages.map(({ version }) => version))].filter((version) => version !== '');
  return versions.length > 0 ? `  to ${versions.join(', then ')}` : '';
}

function stageLine({ role, targets }: StageView, paint: Paint): string {
  const done = targets.filter(({ phase }) => phase === 'done').length;
  const bad = targets.filter(({ phase }) => BAD.has(phase)).map(({ name }) => name);
  const marks = targets.map(({ phase }) => mark(phase, paint)).join('');
  const failed = bad.length > 0 ? `  ${paint('red', `failed: ${bad.join(', ')}`)}` : '';
  return `${`${role}s`.padEnd(11)} ${String(done).padStart(3)}/${targets.length}  ${marks}${failed}`;
}

function mark(phase: TargetPhase, paint: Paint): string {
  if (phase === 'done') return paint('green', '●');
  if (BAD.has(phase)) return paint('red', '✗');
  return MOVING.has(phase) ? paint('cyan', '◐') : '○';
}

function movingLines({ stages }: PlanView, now: number): string[] {
  return stages.flatMap(({ targets }) =>
    targets.filter(({ phase }) => MOVING.has(phase)).map((target) => moving(target, now)),
  );
}

function moving({ name, phase, step, since }: TargetView, now: number): string {
  return `${name} is ${step ? `at ${step}` : phase} for ${formatDuration(now - Date.parse(since))}`;
}

/** What merely moves is told above; here stands what holds it up. */
function waitLines({ waits }: PlanView, now: number): string[] {
  return waits
    .filter(({ reason }) => reason.code !== 'InFlight')
    .map(({ gate, reason, since, until }) => {
      const age = since === '' ? '' : `, since ${formatDuration(now - Date.parse(since))}`;
      const end = until === undefined ? '' : `, until ${until} at most`;
      return `${reason.message} (${gate}${age}${end})`;
    });
}

function indented(heading: string, lines: readonly string[]): string[] {
  return lines.map((line, index) => `  ${(index === 0 ? heading : '').padEnd(6)} ${line}`);
}
