/** Tests that the recordings of how kubectl reads YAML match the real kubectl. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { KEYS_OF_KUBECTL, READ_BY_KUBECTL } from '../support/builders/kubectl-yaml.ts';
import { controlPlane } from './control-plane.ts';

const HEADER = 'apiVersion: example.com/v1\nkind: Example\nmetadata: {name: example}\n';

/** Returns the object that kubectl would send. With `--local`, kubectl asks no server about the kind. */
function asKubectl(yaml: string): unknown {
  const args = ['label', '--local', '-f', '-', 'a=b', '-o', 'json'];
  return JSON.parse(execFileSync(controlPlane().kubectl, args, { input: yaml, encoding: 'utf8' }));
}

test('values and keys', () => {
  const values = READ_BY_KUBECTL.map(([written]) => `- ${written}\n`).join('');
  const keys = KEYS_OF_KUBECTL.map(([written]) => `  ${written}: it\n`).join('');
  expect(asKubectl(`${HEADER}values:\n${values}keys:\n${keys}`)).toMatchObject({
    values: READ_BY_KUBECTL.map(([, value]) => value),
    keys: Object.fromEntries(KEYS_OF_KUBECTL.map(([, key]) => [key, 'it'])),
  });
});

test('numbers that JSON has not', () => {
  for (const written of ['.inf', '-.Inf', '.NaN'])
    expect(() => asKubectl(`${HEADER}value: ${written}\n`)).toThrow('unsupported value');
});
