/** Tests that a file becomes a Plan, or gives one line that tells the user what to correct. */
import { expect, test } from 'vitest';
import { RefitError } from '../util/errors.ts';
import { type Plan, planKind } from './autopilot/plan.ts';
import { readObjects } from './read-object.ts';

const PLAN = `apiVersion: autopilot.k0sproject.io/v1beta2
kind: Plan
metadata:
  name: autopilot
spec:
  id: id1234
  timestamp: 2026-11-20T08:00:00Z
  commands:
    - k0supdate:
        version: v1.36.3+k0s.0
        platforms:
          linux-amd64:
            url: https://example.com/k0s
            sha256: "0b1c"
        targets:
          controllers:
            discovery:
              static:
                nodes: [controller0]
          workers:
            limits:
              concurrent: 5
            discovery:
              selector:
                labels: environment=staging
                fields: metadata.name=worker2
`;

function parsePlanFile(text: string, file: string): Plan {
  const { objects, problems, others } = readObjects(text, file, [planKind]);
  const [first] = objects;
  if (first && problems.length === 0) return first.object as Plan;
  throw new RefitError('REFIT_FILE', '', { problems: [...problems, ...others] });
}

function refusal(text: string): string {
  try {
    parsePlanFile(text, 'plan.yaml');
  } catch (error) {
    if (error instanceof RefitError && error.code === 'REFIT_FILE') return error.message;
    throw error;
  }
  return 'accepted';
}

test('a Plan is read as it was written', () => {
  const plan = parsePlanFile(PLAN, 'plan.yaml');
  expect(plan.metadata.name).toBe('autopilot');
  expect(plan.spec.timestamp).toBe('2026-11-20T08:00:00Z');
  expect(plan.spec.commands[0]?.k0supdate?.targets.controllers).toEqual({
    discovery: { static: { nodes: ['controller0'] } },
  });
});

test('JSON, comments and empty documents are taken, and metadata may hold what it likes', () => {
  const plan = parsePlanFile(PLAN, 'plan.yaml');
  plan.metadata.labels = { team: 'blue' };
  const again = `# first\n---\n${JSON.stringify(plan)}\n---\n# last\n---\n`;
  expect(parsePlanFile(again, 'plan.json')).toEqual(plan);
});

test('what a Plan may hold by its schema is not judged here', () => {
  expect(
    refusal(PLAN.replace('id: id1234', 'id: ""').replace('concurrent: 5', 'concurrent: 0')),
  ).toBe('accepted');
});

test.each([
  [
    'nothing',
    '',
    'plan.yaml: is empty or has only comments, expected a Plan of autopilot.k0sproject.io/v1beta2',
  ],
  [
    'only comments',
    '# nothing\n---\n',
    'plan.yaml: is empty or has only comments, expected a Plan of autopilot.k0sproject.io/v1beta2',
  ],
  [
    'plain text',
    'hello there',
    'plan.yaml: holds the text "hello there", expected a Plan of autopilot.k0sproject.io/v1beta2',
  ],
  ['broken YAML', 'a: [', /^plan\.yaml: is not YAML: Flow sequence .* at line 1, column 5$/],
  [
    'a member twice',
    PLAN.replace('  id:', '  id: a\n  id:'),
    /^plan\.yaml: is not YAML: Map keys must be unique at/,
  ],
  [
    'another kind',
    'apiVersion: apps/v1\nkind: Deployment\n',
    'plan.yaml: holds a Deployment of apps/v1',
  ],
  [
    'a Plan of somebody else',
    'apiVersion: upgrade.cattle.io/v1\nkind: Plan\n',
    'plan.yaml: holds a Plan of upgrade.cattle.io/v1, expected a Plan of autopilot.k0sproject.io/v1beta2',
  ],
  ['no kind', 'spec: {}', /holds an object without kind and apiVersion, expected a Plan of/],
  [
    'a second Plan, which is wrong',
    `${PLAN}---\n${PLAN.replace('concurrent: 5', 'concurrent: five')}`,
    /^plan\.yaml: document 2: spec\.commands\[0\].* is the text "five", expected a whole number$/,
  ],
  [
    'no name',
    PLAN.replace('name: autopilot', 'labels: {}'),
    'plan.yaml: metadata.name: is missing, expected a text',
  ],
  [
    'a number for an id',
    PLAN.replace('id: id1234', 'id: 1234'),
    'plan.yaml: spec.id: is the number 1234, expected a text: put it in quotes',
  ],
  [
    'a number for a text',
    PLAN.replace('v1.36.3+k0s.0', '1.36'),
    'plan.yaml: spec.commands[0].k0supdate.version: is the number 1.36, expected a text: put it in quotes',
  ],
  [
    'a text for a number',
    PLAN.replace('concurrent: 5', 'concurrent: five'),
    'plan.yaml: spec.commands[0].k0supdate.targets.workers.limits.concurrent: is the text "five", expected a whole number',
  ],
  [
    'half a number',
    PLAN.replace('concurrent: 5', 'concurrent: 1.5'),
    'plan.yaml: spec.commands[0].k0supdate.targets.workers.limits.concurrent: is the number 1.5, expected a whole number',
  ],
  [
    'an object for a list',
    PLAN.replace('    - k0supdate', '      k0supdate'),
    'plan.yaml: spec.commands: is an object, expected a list',
  ],
  [
    'a list for an object',
    PLAN.replace('metadata:\n  name: autopilot', 'metadata: [autopilot]'),
    'plan.yaml: metadata: is a list, expected an object',
  ],
  [
    'a member left empty',
    PLAN.replace('limits:\n              concurrent: 5', 'limits:'),
    'plan.yaml: spec.commands[0].k0supdate.targets.workers.limits: is empty, expected an object',
  ],
  [
    'a misspelt member',
    PLAN.replace('sha256', 'sha265'),
    'plan.yaml: spec.commands[0].k0supdate.platforms.linux-amd64: it has no member sha265 (did you mean sha256?)',
  ],
  [
    'a member too many',
    `${PLAN}extra: 1\n`,
    'plan.yaml: the Plan: has no member extra, check the spelling',
  ],
])('%s is refused with one line', (_, text, line) => {
  const message = refusal(text);
  expect(message).not.toContain('\n');
  expect(message).toMatch(typeof line === 'string' ? new RegExp(`^${RegExp.escape(line)}$`) : line);
});

test('the hint for a file that is not YAML asks to check the file, because no field of a kind is wrong', () => {
  const lineOf = (text: string): string | undefined => {
    try {
      readObjects(text, 'plan.yaml', [planKind]);
      return undefined;
    } catch (error) {
      return error instanceof RefitError ? error.line : undefined;
    }
  };
  expect(lineOf('a: [')).toContain('check the path and the content of the file');
  expect(lineOf('')).toContain('kubectl explain');
});
