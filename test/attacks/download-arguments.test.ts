/**
 * Tests that no process argument contains a secret while a binary is downloaded. Another user of a host can read the
 * arguments of all its processes.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { localShells } from '../../src/dialects/kubeadm/agent/perform-on-kubeadm.ts';
import {
  diffScript,
  prepareScript,
  probeScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { attackedManifest, KubeadmRig, VERSION } from './kubeadm-rig.ts';

/** A text that no other process on this machine has in its arguments. */
const SECRET = randomUUID();

const SCRIPTS = {
  plan: (given: ReturnType<typeof attackedManifest>) =>
    probeScript(given.manifest, given.host, Date.now()),
  stage: (given: ReturnType<typeof attackedManifest>) =>
    stepScript({ step: 'stage', rollout: 'r', version: VERSION }, stageBody(given.manifest)),
  prepare: (given: ReturnType<typeof attackedManifest>) =>
    prepareScript(given.manifest, given.host, false),
};

test.each(Object.entries(SCRIPTS))(
  '%s: password and token of a download stand in no arguments and in no environment',
  async (_name, scriptOf) => {
    await using rig = await KubeadmRig.create();
    const files = '/proc/[0-9]*/cmdline /proc/[0-9]*/environ';
    await rig.program(
      'curl',
      `cat ${files} 2>/dev/null | tr '\\0' '\\n' >>"$REFIT_ROOT/seen"; cat >>"$REFIT_ROOT/asked"; exit 22`,
    );
    const binary = {
      url: `https://scout:${SECRET}@c/kubeadm?sig=${SECRET}`,
      sha256: 'ab'.repeat(32),
    };
    const given = attackedManifest({ kubeadm: binary, kubelet: binary });
    const said = await rig.onHost(scriptOf(given));
    expect(await readFile(rig.at('asked'), 'utf8')).toContain(`url = "${binary.url}"\n`);
    const seen = await readFile(rig.at('seen'), 'utf8');
    expect(seen).toContain('curl');
    expect(seen).not.toContain(SECRET);
    expect(said).not.toContain(SECRET);
    expect(await rig.onHost(`grep -rsl ${SECRET} "$REFIT_ROOT/run" "$REFIT_ROOT/var"`)).toBe('');
    expect(await rig.onHost(diffScript(given.manifest, given.host))).toBe('');
  },
);

test('a script that the agent runs on its own host stands in no arguments, and runs whole or not at all', async () => {
  const stop = new AbortController();
  const shells = localShells(stop.signal);
  const host = { name: 'cp1', role: 'worker' } as const;
  await using rig = await KubeadmRig.create();
  // All arguments of a busy machine may be more than a script may print.
  const seen = rig.at('seen');
  const script = `SECRET=${SECRET}\ncat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >${seen}`;
  await shells.run(host, script);
  const found = await readFile(seen, 'utf8');
  expect(found).toContain('sh');
  expect(found).not.toContain(SECRET);
  // The script is incomplete, as if the agent died while it sent the script.
  await shells.run(host, `touch ${rig.at('owned')}\n(`);
  expect(existsSync(rig.at('owned'))).toBe(false);
});
