/**
 * Carries out an attack on each guard of the agent. Then it weakens the guard, and carries out the same attack, which
 * must succeed. So an attack that notices nothing fails here. Another process carries out all attacks at once, because
 * only plain Node.js lets a test change the code while it loads.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect } from 'vitest';
import { AGENT_GUARDS } from './agent-guards.ts';
import { attackAsNobody } from './rig.ts';

let results: Readonly<Record<string, boolean | string>> = {};

beforeAll(async () => {
  if (process.getuid?.() !== 0) return;
  const runner = join(import.meta.dirname, 'agent-guards-runner.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [runner]);
  results = JSON.parse(stdout) as typeof results;
});

for (const { name, planted } of AGENT_GUARDS) {
  attackAsNobody(`the attack on the guard ${name} fails`, () => {
    expect(results[name]).toBe(false);
  });
  for (const what of Object.keys(planted))
    attackAsNobody(`the attack on the guard ${name} succeeds once its check ${what}`, () => {
      expect(results[`${name} ${what}`]).toBe(true);
    });
}
