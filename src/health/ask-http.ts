/** Asks whether a server answers a GET request with a good status. */
import { statusOf } from '../http/http-get.ts';
import { messageOf } from '../util/errors.ts';
import { isSuccess } from '../util/http-status.ts';
import { accessOf, type CheckTools, headOf, shownUrl } from './ask-server.ts';
import type { CheckFinding, HttpCheck } from './checks.ts';

/**
 * Milliseconds after which the check fails if the server does not answer. This is shorter than the limit of a round,
 * after which the check would be unknown.
 */
const WITHIN_MS = 8_000;

/**
 * Resolves with the result of the check. The check fails if the server cannot be reached, because the check requires an
 * answer. Rejects if the credentials cannot be read.
 */
export async function askHttp(
  { url, secretName }: HttpCheck,
  tools: CheckTools,
  abort: AbortSignal,
  withinMs = WITHIN_MS,
): Promise<CheckFinding> {
  const access = await accessOf(secretName, tools, abort);
  const address = new URL(url);
  const late = AbortSignal.timeout(withinMs);
  try {
    const response = await headOf({ url: address }, access, tools, AbortSignal.any([abort, late]));
    response.destroy();
    const message = `${shownUrl(address)} answered ${statusOf(response)}`;
    const { statusCode = 0 } = response;
    if (isSuccess(statusCode)) return { state: 'passing', message };
    return { state: 'failing', message: `${message}; only 200 to 299 are good` };
  } catch (error) {
    if (abort.aborted) throw error;
    const message = late.aborted
      ? `${shownUrl(address)} did not answer within ${withinMs / 1000} s`
      : access.hide(messageOf(error));
    return { state: 'failing', message };
  }
}
