/**
 * Tests the error for a user who may not list a kind. It must not show that the request was for one
 * name.
 */
import { expect, test } from 'vitest';
import { cattlePlans } from '../api/kinds.ts';
import type { KubeClient } from './client.ts';
import { StatusError } from './status-error.ts';
import { tryList } from './try-list.ts';

const REST = 'User "viewer" cannot list resource "plans" in API group "upgrade.cattle.io"';

/** Returns an API server that refuses requests with the messages of Kubernetes. */
function refusing(): KubeClient {
  const list = async (_resource: unknown, { fieldSelector = '' }): Promise<never> => {
    const name = fieldSelector.replace('metadata.name=', '');
    return await Promise.reject(
      new StatusError(
        {
          kind: 'Status',
          code: 403,
          reason: 'Forbidden',
          message: `plans.upgrade.cattle.io "${name}" is forbidden: ${REST}`,
          details: { name, kind: 'plans' },
        },
        { server: 'https://10.0.0.1:6443' },
      ),
    );
  };
  return { list } as unknown as KubeClient;
}

test('a refusal names no object that nobody asked for', async () => {
  const refused = await tryList(refusing(), cattlePlans).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: 403,
    message: `plans.upgrade.cattle.io is forbidden: ${REST}`,
    server: 'https://10.0.0.1:6443',
    status: { details: { kind: 'plans' } },
  });
  expect(refused).not.toHaveProperty('status.details.name');
});

test('a refusal of one object names it', async () => {
  const asked = tryList(refusing(), cattlePlans, { fieldSelector: 'metadata.name=autopilot' });
  await expect(asked).rejects.toThrow(`plans.upgrade.cattle.io "autopilot" is forbidden: ${REST}`);
});
