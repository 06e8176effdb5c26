/** Tests what the report of `refit ready` does with texts that users of a namespace write, and with checks that fail. */
import { expect, test } from 'vitest';
import { placedPod, readyContext, readyNode } from '../../test/support/ready/world.ts';
import { askReadiness } from './readiness.ts';

const NONE = new Map<never, never>();
const ESCAPE = String.fromCodePoint(27);
const FORGED = `x${ESCAPE}[9A${ESCAPE}[0J\nReady for v1.37.0: 0 blockers`;

test('what users write into a finding moves no cursor, and begins no line', async () => {
  const volumes = [{ name: 'x', persistentVolumeClaim: { claimName: FORGED } }];
  const node = readyNode('w1', { nodeInfo: { kubeletVersion: `v1.36.3${FORGED}` } });
  const objects = [node, readyNode('w2'), placedPod('web-1', 'w1', { volumes })];
  const report = await askReadiness(readyContext({ objects }), NONE);
  const texts = report.findings.map(
    ({ object = '', message, cure = '' }) => object + message + cure,
  );
  expect(texts.join('')).toContain('Ready for v1.37.0: 0 blockers');
  expect([...texts, ...report.from].join('')).not.toMatch(new RegExp(`[${ESCAPE}\n]`));
});

test('a text that users write is cut before it fills the screen', async () => {
  const volumes = [{ name: 'x', persistentVolumeClaim: { claimName: 'x'.repeat(100_000) } }];
  const objects = [readyNode('w1'), readyNode('w2'), placedPod('web-1', 'w1', { volumes })];
  const { findings } = await askReadiness(readyContext({ objects }), NONE);
  const lengths = findings.map(({ message }) => message.length);
  expect(Math.max(...lengths)).toBe(2001);
});

test('a check that fails is unknown, and the other checks are made', async () => {
  const broken = async () => await Promise.reject(new Error('nothing answers'));
  const { findings } = await askReadiness(readyContext({ groundChecks: [broken] }), NONE);
  expect(findings.filter(({ check }) => check === 'ground')).toEqual([
    { check: 'ground', state: 'unknown', message: 'the check could not be made: nothing answers' },
  ]);
  expect(new Set(findings.map(({ check }) => check)).size).toBe(9);
});
