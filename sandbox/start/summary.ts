/** The summary at the end of `npm start`: what every node runs now, a picture of the run, and the waits. */
import type { Medium } from '../../src/cli/output.ts';
import { wrapped } from '../../src/cli/phrases.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { picture } from '../../src/cli/status/picture.ts';
import { targetsOf } from '../../src/cli/status/sentences.ts';
import { counted, listed } from '../../src/util/phrases.ts';

/** As wide as terminals are by default; a pipe has no width. */
const WIDTH = 80;
const MOST_NAMES = 5;

/** `versions` contains the version that each node runs now, as the node itself reports it. */
export function summarize(
  view: ShownPlan,
  versions: ReadonlyMap<string, string>,
  waits: readonly string[],
  { width, paint }: Medium,
): string[] {
  const medium = { paint, width: Math.min(WIDTH, width) };
  return [
    ...picture(view, medium).map((line) => `  ${line}`),
    '',
    ...versionLines(view, versions),
    'Waits during the upgrade:',
    ...(waits.length > 0 ? waits.map((line) => `  ${line}`) : ['  none']),
    ...failures(view),
  ].flatMap((line) => fitted(line, medium.width));
}

function fitted(line: string, width: number): string[] {
  const [indent = ''] = /^ */.exec(line) ?? [];
  if (line.length <= width) return [line];
  return wrapped(line.trimStart(), width - indent.length).map((part) => `${indent}${part}`);
}

/** One line for each version that runs. */
function versionLines(view: ShownPlan, versions: ReadonlyMap<string, string>): string[] {
  const targets = [...new Map(targetsOf(view).map((target) => [target.name, target])).values()];
  const byVersion = Map.groupBy(targets, ({ name }) => versions.get(name) ?? 'an unknown version');
  return [...byVersion].map(([version, members]) => {
    const before = [...new Set(members.flatMap(({ from }) => from ?? []))].filter(
      (from) => from !== version,
    );
    const who = listed(
      members.map(({ name }) => name),
      MOST_NAMES,
    );
    const from = before.length === 0 ? '' : `, before ${before.join(', ')}`;
    return `${counted(members.length, 'node')} now ${members.length === 1 ? 'runs' : 'run'} ${version}${from}: ${who}.`;
  });
}

function failures(view: ShownPlan): string[] {
  const failed = targetsOf(view).filter(({ phase }) => phase === 'failed');
  return failed.map(
    ({ name, failure }) => `${name} failed: ${failure ?? view.reason ?? 'no reason was given'}`,
  );
}
