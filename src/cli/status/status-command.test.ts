/** Tests which options of `refit status` exclude each other. */
import { expect, test } from 'vitest';
import { showStatus } from './status-command.ts';
import type { SessionParts } from './status-session.ts';

test('status refuses a time limit without a watch before it reads the cluster', async () => {
  const shown = showStatus({ output: 'text', timeout: 1000 }, {} as SessionParts);
  await expect(shown).rejects.toMatchObject({
    code: 'REFIT_USAGE',
    message:
      '--timeout limits how long --watch follows the plans: add --watch, or leave --timeout out',
  });
});
