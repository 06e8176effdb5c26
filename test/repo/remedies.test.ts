/** Tests that for every reason that stops or delays something, the output says what a person can do to end it. */
import { expect, test } from 'vitest';
import { upgradePolicySpecSchema } from '../../src/api/refit/upgrade-policy.ts';
import { REASONS, REMEDIES, type ReasonCode, remedyOf } from '../../src/engine/model/reasons.ts';
import { COMMANDS } from '../support/commands.ts';
import { productFiles } from './tree.ts';

const CODES = Object.keys(REASONS) as ReasonCode[];

/** Reasons that report an event. Nothing waits because of them. */
const HARMLESS = [
  'Started',
  'Completed',
  'EditedWhileRunning',
  'NodeIncluded',
  'RestartedAfterEdit',
  'Resumed',
  'Retried',
  'RollsBack',
  'WindowOpened',
  'VersionUnchecked',
];

/** The verbs with which an instruction may begin. */
const VERBS =
  'add|bring|change|correct|delete|find|fix|give|let|look|make|mend|migrate|move|name|nothing|remove|repair|restart|restore|run|set|start|upgrade';

/** Returns the codes that gates and verifiers give when they make a target wait or stop it. */
function codesOfVerdicts(): string[] {
  const calls = productFiles().flatMap(({ text }) => [
    ...text.matchAll(/\b(?:wait|stop)\(\s*'([A-Z]\w+)'/g),
  ]);
  return [...new Set(calls.map(([, code = '']) => code))];
}

test('only reasons that stop and delay nothing have no remedy', () => {
  const without = CODES.filter((code) => remedyOf(code) === undefined);
  expect(without.toSorted()).toEqual(HARMLESS.toSorted());
});

test('every reason of a gate or verifier has a remedy', () => {
  const codes = codesOfVerdicts();
  expect(codes).toContain('TargetMissing');
  expect(codes.filter((code) => remedyOf(code as ReasonCode) === undefined)).toEqual([]);
});

test.each(CODES.filter((code) => !HARMLESS.includes(code)))(
  '%s: an instruction, or that it ends by itself',
  (code) => {
    const remedy = REMEDIES[code];
    const said = remedyOf(code) ?? '';
    if (remedy !== null && 'act' in remedy)
      expect(remedy.act).toMatch(new RegExp(`^(?:${VERBS})\\b`));
    else expect(said).toMatch(/^This ends by itself when \w/);
    expect(said).toMatch(/^[A-Z].*[^.]\.$/);
    // This is the text that users see if the code knows no remedy for the reason.
    expect(said).not.toMatch(/^Fix the cause\.?$/);
  },
);

test('every command that a remedy names exists', () => {
  const known = new Set(COMMANDS.map(({ name }) => name.split(' ')[0]));
  const named = CODES.flatMap((code) => [...(remedyOf(code) ?? '').matchAll(/`refit (\w+)/g)]);
  expect(named.length).toBeGreaterThan(0);
  expect(named.flatMap(([, name = '']) => (known.has(name) ? [] : name))).toEqual([]);
});

test('every field of a policy that a remedy names exists', () => {
  const { shape } = upgradePolicySpecSchema;
  const fields = new Set(Object.keys(shape));
  const named = CODES.flatMap((code) =>
    [...(remedyOf(code) ?? '').matchAll(/`([a-z]\w*)(?:[.:][^`]*)?`/g)].flatMap(
      ([, name = '']) => name,
    ),
  );
  expect(named).toContain('versions');
  expect(named.filter((name) => !fields.has(name))).toEqual([]);
});
