/** Calls an updater over HTTPS as Cluster API calls an extension. Checks every answer, because Refit does not trust updaters. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { z } from 'zod';
import { type Claim, HOOK_GROUP, type HookName } from '../../../../api/capi/hooks.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import type { Metrics } from '../../../../runtime/metrics.ts';
import { textIn } from '../../../../util/bounded-file.ts';
import { messageOf } from '../../../../util/errors.ts';
import { isRecord, parseJson } from '../../../../util/json.ts';
import { untilAborted } from '../../../../util/waits.ts';
import { MACHINE_SHAPE, SET_SHAPE, type Shape } from '../can-update.ts';
import { brief, describeIssue } from './hook-patch.ts';

export type UpdaterHook = Exclude<HookName, 'Discovery'>;

export interface UpdaterAnswer extends Claim {
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly retryAfterSeconds?: number;
}

/** Calls a hook of an updater. Rejects with the reason if there is no valid answer. */
export type CallUpdater = (
  updater: Updater,
  hook: UpdaterHook,
  body: object,
  abort: AbortSignal,
) => Promise<UpdaterAnswer>;

/**
 * Reports each call to `observe`, with its milliseconds and its outcome: Success, Failure, or `<error>` if there was no
 * valid answer.
 */
export function observed(call: CallUpdater, observe: Metrics['updaterCalled']): CallUpdater {
  return async (updater, hook, body, abort) => {
    const began = performance.now();
    let outcome = '<error>';
    try {
      const answer = await call(updater, hook, body, abort);
      outcome = answer.status;
      return answer;
    } finally {
      observe({ updater: updater.name, hook, outcome }, performance.now() - began);
    }
  };
}

/**
 * The message of the error if Refit does not check who calls its hooks. Without that check, anybody
 * could make Refit send a text to an updater with Refit's certificate.
 */
export const UNPROVEN = 'updaters other than refit need --client-ca';

const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const message = z.string().transform(brief).exactOptional();
const common = { status: z.enum(['Success', 'Failure']), message };
const retryAfterSeconds = z.int().min(0).max(2_147_483_647);
/** Accepts a patch or nothing. An empty object counts as nothing, because Go's encoder writes `{}` for an absent patch. */
const patch = z.preprocess(
  (given) => (isRecord(given) && Object.keys(given).length === 0 ? null : given),
  z.object({ patchType: z.enum(['JSONPatch', 'JSONMergePatch']), patch: z.base64() }).nullish(),
);
const patchesOf = ({ parts }: Shape) =>
  Object.fromEntries(parts.map(({ object }) => [`${object}Patch`, patch]));
const claimOf = (shape: Shape) => ({
  ...patchesOf(shape),
  affectsAvailability: z.boolean().nullish(),
});
const ANSWERS = {
  CanUpdateMachine: z.object({ ...common, ...claimOf(MACHINE_SHAPE) }),
  CanUpdateMachineSet: z.object({ ...common, ...claimOf(SET_SHAPE) }),
  /**
   * If `retryAfterSeconds` is missing or negative in a success, Cluster API would treat the update as done, so such an
   * answer is not valid. In a failure, Cluster API does not read this field.
   */
  UpdateMachine: z.discriminatedUnion('status', [
    z.object({ ...common, status: z.literal('Success'), retryAfterSeconds }),
    z.object({ ...common, status: z.literal('Failure') }),
  ]),
} as const;

const requestHook = z.looseObject({ hook: z.string() });
const handlerSchema = z.looseObject({ name: z.string().regex(/^[a-z0-9-]{1,63}$/), requestHook });
const discoverySchema = z.object({
  ...common,
  handlers: z.array(handlerSchema).max(100).nullish(),
});

type Post = (path: string, content: object) => Promise<unknown>;

/**
 * Returns a function that calls updaters. `certificates` is the folder that has one folder for each client certificate; undefined if there
 * are no certificates.
 */
export function updaterClient(certificates: string | undefined): CallUpdater {
  return async (updater, hook, body, abort) => {
    const call: Post = async (path, content) =>
      await post(updater, `/${HOOK_GROUP}/${path}`, content, certificates, abort);
    const handler = await handlerOf(updater, hook, call);
    const answer = await call(`${hook.toLowerCase()}/${handler}`, {
      apiVersion: HOOK_GROUP,
      kind: `${hook}Request`,
      settings: updater.settings ?? {},
      ...body,
    });
    const { data, error } = ANSWERS[hook].safeParse(answer);
    if (error) throw new Error(`its answer is not valid: ${describeIssue(error)}`);
    return data;
  };
}

function keyOf(hook: UpdaterHook) {
  return `${hook.charAt(0).toLowerCase()}${hook.slice(1)}` as Uncapitalize<UpdaterHook>;
}

/**
 * Resolves with the name of the updater's handler for the hook. The name is in the UpdaterSet or is found by discovery.
 * Each call repeats the discovery, because a handler that was removed must not be called. Rejects if the updater has no
 * handler for UpdateMachine, because such an updater must not accept changes.
 */
async function handlerOf(
  { handlers = {} }: Updater,
  hook: UpdaterHook,
  call: Post,
): Promise<string> {
  const given = handlers[keyOf(hook)];
  if (given !== undefined && handlers.updateMachine !== undefined) return given;
  const found = await call('discovery', { apiVersion: HOOK_GROUP, kind: 'DiscoveryRequest' });
  const { data, error } = discoverySchema.safeParse(found);
  if (error) throw new Error(`its discovery is not valid: ${describeIssue(error)}`);
  const nameFor = (wanted: UpdaterHook): string => {
    const name =
      handlers[keyOf(wanted)] ??
      data.handlers?.find(({ requestHook }) => requestHook.hook === wanted)?.name;
    if (name === undefined) throw new Error(`it serves no handler for ${wanted}`);
    return name;
  };
  nameFor('UpdateMachine');
  return nameFor(hook);
}

/** The most seconds for one call of an updater if its UpdaterSet does not set a limit. */
const CALL_SECONDS = 3;

async function post(
  updater: Updater,
  path: string,
  content: object,
  certificates: string | undefined,
  abort: AbortSignal,
): Promise<unknown> {
  const { timeoutSeconds = CALL_SECONDS, caBundle = '' } = updater;
  const text = JSON.stringify(content);
  const signal = AbortSignal.any([abort, AbortSignal.timeout(timeoutSeconds * 1000)]);
  const options = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
    ca: Buffer.from(caBundle, 'base64').toString(),
    minVersion: 'TLSv1.2',
    // Connections are not kept, so that a replaced certificate is used at once.
    agent: false,
    signal,
    ...(await clientCertificate(updater, certificates)),
  } as const;
  const address = new URL(
    `${baseOf(updater).replace(/(?<!\/)\/+$/, '')}${path}?timeout=${timeoutSeconds}s`,
  );
  const answering = async (): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request(address, options, resolve).on('error', reject).end(text);
    const response = await promise;
    const body = await textIn(
      response,
      MAX_ANSWER_BYTES,
      `its answer has more than ${MAX_ANSWER_BYTES} bytes`,
    );
    if (response.statusCode !== 200)
      throw new Error(`it answered HTTP ${response.statusCode} to ${path}`);
    return body;
  };
  // If the updater switches protocols, the connection ends without an answer and without an error. So the wait also
  // ends when the signal aborts.
  const answer = await untilAborted(answering(), signal).catch((error: unknown) => {
    throw new Error(
      abort.aborted ? 'no answer in time' : `no answer from ${address.host}: ${messageOf(error)}`,
    );
  });
  const value = parseJson(answer);
  if (value === undefined) throw new Error('its answer is not JSON');
  return value;
}

function baseOf({ url, service }: Updater): string {
  if (!service) return url ?? '';
  const { name, namespace, port = 443, path = '' } = service;
  return `https://${name}.${namespace}.svc:${port}${path}`;
}

async function clientCertificate(
  { clientCertificate: name }: Updater,
  certificates: string | undefined,
) {
  if (name === undefined) return {};
  if (certificates === undefined)
    throw new Error(`clientCertificate is ${name}, but --updater-certs is not set`);
  const read = async (file: string): Promise<string> =>
    await readFile(join(certificates, name, file), 'utf8');
  return { cert: await read('tls.crt'), key: await read('tls.key') };
}
