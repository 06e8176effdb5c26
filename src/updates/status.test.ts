/** Tests which parts of a status are written into the annotation. */
import { expect, test } from 'vitest';
import type { UpdateConfig } from '../api/autopilot/update-config.ts';
import { printableStatus, statusOf, statusPatch } from './status.ts';

test('the message of a server is written without what steers a terminal, and reads back the same', () => {
  const status = {
    reason: 'CheckFailed',
    message: 'it says \u001B[2J\u202Eno',
    obeyed: 'now\u200B',
  };
  const written = statusOf(statusPatch(status) as UpdateConfig);
  expect(written).toEqual({ ...status, message: 'it says \uFFFD[2J\uFFFDno' });
  expect(written).toEqual(printableStatus(status));
});
