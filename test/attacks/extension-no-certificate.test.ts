/**
 * Tests that the hooks serve no client without a certificate of the CA of the managers. Every pod in the network can
 * connect to the hooks.
 */
import { connect as connectHttp2 } from 'node:http2';
import { expect, test, vi } from 'vitest';
import { callHook } from '../../sandbox/cluster/hook-caller.ts';
import { createAuthority, issueClient, validFrom } from '../../tools/controlplane/certs.ts';
import { runRefitProcess } from '../testenv/refit-process.ts';
import { ExtensionRig } from './extension-rig.ts';

test('no certificate, and one of another CA with the same name: refused, and logged', async () => {
  await using rig = await ExtensionRig.start();
  const { url, authority } = rig.extension;
  const subject = { commonName: 'stand-in-hooks' };
  const validity = validFrom(Date.now());
  const forged = issueClient(
    { subject, key: createAuthority(subject, validity).key },
    { commonName: 'managers' },
    validity,
  );
  for (const protocol of ['h2', 'http/1.1'] as const) {
    await expect(callHook({ url, authority, protocol }, 'Discovery', {})).rejects.toThrow();
    await expect(
      callHook({ url, authority, protocol, client: forged }, 'Discovery', {}),
    ).rejects.toThrow();
  }
  const session = connectHttp2(url, { ca: authority });
  session.on('error', () => undefined);
  await vi.waitFor(() => expect(rig.log).toContain('"msg":"a connection was refused"'), 60_000);
  session.destroy();
  expect(rig.log).not.toContain('"msg":"answered","hook":"UpdateMachine"');
  await rig.callAsManager();
});

test('a certificate of the CA that none of the names is on: refused, and logged', async () => {
  const more = ['--client-name', 'others', '--client-name', 'managers'];
  await using rig = await ExtensionRig.start({ more });
  const { extension } = rig;
  const { url, authority } = extension;
  for (const protocol of ['h2', 'http/1.1'] as const) {
    const stranger = { url, authority, protocol, client: extension.clientOf('metrics') };
    await expect(callHook(stranger, 'Discovery', {})).rejects.toThrow();
    const known = { ...stranger, client: extension.clientOf('others') };
    await expect(callHook(known, 'Discovery', {})).resolves.toBeDefined();
  }
  expect(rig.log).toContain('the certificate of \\"metrics\\" has none of the names');
  await rig.callAsManager();
});

test.each([
  ['neither says who may call', []],
  ['both say who may call', ['--client-ca', 'ca.crt', '--insecure-no-client-auth']],
])('%s: it does not start', async (_name, more) => {
  const { code, stderr } = await runRefitProcess(
    'capi-extension',
    '--payload-url',
    'https://example.com/{version}',
    ...more,
  );
  expect(code).toBe(2);
  expect(stderr.join('\n')).toContain(
    'REFIT_USAGE: capi-extension needs either --client-ca or --insecure-no-client-auth',
  );
});
