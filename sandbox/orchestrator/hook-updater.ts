/** Calls an updater over HTTPS, as Cluster API calls extensions. */
import { request } from 'node:https';
import { z } from 'zod';
import { HOOK_GROUP, type Triple, type UpdateMachineAnswer } from '../../src/api/capi/hooks.ts';
import type { Updater } from './runner.ts';

export interface HookEndpoint {
  readonly name: string;
  /** `https://…`, without the path of a hook. */
  readonly url: string;
  /** The CA certificate of the server, in PEM. */
  readonly authority: string;
  /** Handler names from its discovery. */
  readonly handlers: { readonly canUpdateMachine: string; readonly updateMachine: string };
}

const CALL_MS = 10_000;
const MAX_ANSWER_BYTES = 20 * 1024 * 1024;

const patch = z.object({ patchType: z.enum(['JSONPatch', 'JSONMergePatch']), patch: z.string() }).exactOptional();
const common = { status: z.enum(['Success', 'Failure']), message: z.string().exactOptional() };
const canResponse = z.object({
  ...common,
  machinePatch: patch,
  infrastructureMachinePatch: patch,
  bootstrapConfigPatch: patch,
});
const updateResponse = z.object({ ...common, retryAfterSeconds: z.number() });

export function hookUpdater(endpoint: HookEndpoint): Updater {
  const { name, handlers } = endpoint;
  return {
    name,
    canUpdate: async (current, desired) =>
      canResponse.parse(await call(endpoint, 'CanUpdateMachine', handlers.canUpdateMachine, { current, desired })),
    update: async (desired) =>
      updateResponse.parse(await call(endpoint, 'UpdateMachine', handlers.updateMachine, { desired })),
  };
}

type Body = { readonly desired: Triple; readonly current?: Triple };

/** Rejects for any status but 200, and on a timeout. */
async function call({ url, authority }: HookEndpoint, hook: string, handler: string, body: Body): Promise<unknown> {
  const path = `/${HOOK_GROUP}/${hook.toLowerCase()}/${handler}?timeout=${CALL_MS / 1000}s`;
  const text = JSON.stringify({ apiVersion: HOOK_GROUP, kind: `${hook}Request`, ...body });
  const headers = { 'content-length': Buffer.byteLength(text) };
  const abort = AbortSignal.timeout(CALL_MS);
  return await new Promise<unknown>((resolve, reject) => {
    const options = { method: 'POST', headers, ca: authority, signal: abort, minVersion: 'TLSv1.2' } as const;
    const outgoing = request(new URL(path, url), options, (response) => {
      let answer = '';
      response.setEncoding('utf8').once('error', reject);
      response.on('data', (chunk: string) => {
        answer += chunk;
        if (answer.length > MAX_ANSWER_BYTES) response.destroy(new Error(`the answer of ${hook} is too long`));
      });
      response.once('end', () => {
        if (response.statusCode === 200) resolve(parsed(answer));
        else reject(new Error(`${hook} returned HTTP ${response.statusCode}: ${answer.slice(0, 512)}`));
      });
    });
    outgoing.once('error', reject).end(text);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return {
      status: 'Failure',
      message: `the answer is not JSON: ${String(error)}`,
    } satisfies Partial<UpdateMachineAnswer>;
  }
}
