/** Compares what the specs say about the original with what they say about Refit. */
import type { Checks } from '../checks.ts';
import type { Spec } from './suite.ts';

/** The number of specs of the suite. */
const SPECS = 18;

/** Returns a table with one line for each spec, and one column for each controller. */
export function tableOf(original: readonly Spec[], refit: readonly Spec[]): string[] {
  const width = Math.max(0, ...original.map(({ name }) => name.length));
  const cell = (spec: Spec | undefined): string =>
    spec === undefined ? 'did not run' : `${spec.state} ${spec.seconds} s`;
  const line = (name: string, first: string, second: string): string =>
    `${name.padEnd(width)}  ${first.padEnd(16)}${second}`;
  return [
    line('spec', 'original', 'Refit'),
    ...original.map((spec) => line(spec.name, cell(spec), cell(counterpart(spec, refit)))),
  ];
}

const counterpart = ({ name }: Spec, specs: readonly Spec[]): Spec | undefined =>
  specs.find((each) => each.name === name);

/**
 * Checks each spec. A spec that passes with the original must pass with Refit. A spec that fails with both proves
 * nothing about Refit, so it is only named.
 */
export async function compare(
  checks: Checks,
  original: readonly Spec[],
  refit: readonly Spec[],
): Promise<void> {
  await checks.check(`the suite has ${SPECS} specs`, () =>
    [original, refit].flatMap(({ length }) => (length === SPECS ? [] : [`${length} specs ran`])),
  );
  for (const spec of original) {
    const own = counterpart(spec, refit);
    const reason = own === undefined ? 'it did not run' : own.reason;
    if (spec.passed || own?.passed === true)
      await checks.check(`Refit: ${spec.name}`, () => (own?.passed === true ? [] : [reason]));
    else checks.gap(spec.name, `it fails with both: original: ${spec.reason}; Refit: ${reason}`);
  }
}
