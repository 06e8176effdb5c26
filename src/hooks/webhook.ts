/**
 * Carries out a hook as a signed request to a server. The key of the request is the same for every leader, so the server can detect a
 * repeated request.
 */
import type { IncomingMessage } from 'node:http';
import { chunksOf, getOnce, isTransient, statusOf } from '../http/http-get.ts';
import type { Environment } from '../http/proxy-choice.ts';
import { keyProblem, signatureOf } from '../http/signature.ts';
import type { KubeClient } from '../kube/client.ts';
import { readSecret } from '../kube/read-secret.ts';
import type { Clock } from '../util/clock.ts';
import { isSuccess } from '../util/http-status.ts';
import { formsOfSecret, withoutForms } from '../util/secret-forms.ts';
import type { HookFinding, HookMoment, HookRun, WebhookAction } from './rules.ts';

export interface WebhookTools {
  readonly client: KubeClient;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
  readonly clock: Clock;
}

/** The names of the moments in policies. Requests contain the same names. */
const MOMENTS: Readonly<Record<HookMoment, string>> = {
  beforePlan: 'BeforePlan',
  beforeDrain: 'BeforeDrain',
  afterDrain: 'AfterDrain',
  beforeRestart: 'BeforeRestart',
  afterVerified: 'AfterVerified',
  afterPlan: 'AfterPlan',
};
/** The most bytes of an answer that are read. Only its beginning is shown. */
const MOST_BYTES = 4_096;
/**
 * The fewest characters at the end of a text that are treated as a part of a secret. Fewer characters match by chance,
 * and reveal nothing.
 */
const SHORTEST_PART = 4;

/**
 * Sends the request of the run once, and returns the meaning of the response. Rejects if there is no response or no
 * valid key; the request is then sent again. Redirects are not followed, so that no other server receives the request.
 */
export async function askWebhook(
  { client, namespace, environment, clock }: WebhookTools,
  run: HookRun,
  { url, secretName }: WebhookAction,
  abort: AbortSignal,
): Promise<HookFinding> {
  const secret = await readSecret({ client, namespace, name: secretName }, abort);
  const key = secret('key');
  const problem = keyProblem(key);
  if (problem !== undefined)
    throw new Error(`the value key of Secret ${namespace}/${secretName} ${problem}`);
  const body = JSON.stringify(bodyOf(run));
  const signature = signatureOf(body, key, clock.now());
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'refit',
    'idempotency-key': run.id,
    ...signature.headers,
  };
  const authority = secret('ca.crt').toString('utf8') || undefined;
  const asked = { headers, method: 'POST', body, authority, environment } as const;
  const address = new URL(url);
  const response = await getOnce(address, asked, abort);
  try {
    const { text, isWhole } = await beginningOf(response);
    const forms = formsOf(key, signature.hex);
    const shown = withoutForms(textOf(text), forms);
    const said = isWhole ? shown : withoutPart(shown, forms);
    const message = `${address.host} answered ${statusOf(response)}${said && `: ${said}`}`;
    return { state: stateOf(response), message };
  } finally {
    response.destroy();
  }
}

/**
 * Returns the body of the request. The body contains the idempotency key as well, because the signature covers only the
 * body and the time. JSON omits the fields that are undefined because the run has no node.
 */
function bodyOf({ id, hook, node, variables }: HookRun): object {
  return {
    id,
    hook: hook.name,
    when: MOMENTS[hook.when],
    plan: {
      kind: variables['REFIT_PLAN_KIND'],
      namespace: variables['REFIT_PLAN_NAMESPACE'],
      name: variables['REFIT_PLAN'],
    },
    node,
    target: variables['REFIT_TARGET'],
    role: variables['REFIT_ROLE'],
    from: variables['REFIT_FROM_VERSION'],
    to: variables['REFIT_TO_VERSION'],
    run: variables['REFIT_RUN'],
    attempt: variables['REFIT_ATTEMPT'],
  };
}

function stateOf({ statusCode = 0 }: IncomingMessage): HookFinding['state'] {
  if (isSuccess(statusCode)) return 'succeeded';
  const isRefusal = statusCode >= 400 && statusCode <= 499 && !isTransient(statusCode);
  return isRefusal ? 'failed' : 'running';
}

interface Beginning {
  readonly text: string;
  /** False if the body may continue after this text. */
  readonly isWhole: boolean;
}

/**
 * Returns the beginning of the body. If the connection breaks, returns the part that has arrived, because the status is
 * already known.
 */
async function beginningOf(response: IncomingMessage): Promise<Beginning> {
  const parts: Buffer[] = [];
  let length = 0;
  let isWhole = true;
  try {
    for await (const part of chunksOf(response)) {
      parts.push(part);
      length += part.length;
      if (length >= MOST_BYTES) break;
    }
  } catch {
    // The part that has arrived is enough.
    isWhole = false;
  }
  const text = Buffer.concat(parts).subarray(0, MOST_BYTES).toString('utf8');
  return { text, isWhole: isWhole && length < MOST_BYTES };
}

/**
 * Returns the text of a response on one line. This is the `message` if the body is JSON with a message, and the whole
 * body otherwise.
 */
function textOf(body: string): string {
  let said = body;
  try {
    const { message } = JSON.parse(body) as { readonly message?: unknown };
    if (typeof message === 'string') said = message;
  } catch {
    // The answer is not JSON.
  }
  return onOneLine(said);
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/**
 * Returns the key and the signature in each form in which a server may quote them. Each form is on one line, like the
 * text in which it is searched.
 */
function formsOf(key: Buffer, signature: string): readonly string[] {
  return [...formsOfSecret(key), signature].toSorted((a, b) => b.length - a.length);
}

/**
 * Returns the text, which was cut off. If the text ends with the beginning of one of the forms, that beginning is
 * replaced.
 */
function withoutPart(text: string, forms: readonly string[]): string {
  // The cut may have split a character. A split character is decoded as U+FFFD.
  const whole = text.replace(/\uFFFD$/, '');
  const lengths = forms.map((form) => {
    for (let length = form.length - 1; length >= SHORTEST_PART; length--)
      if (whole.endsWith(form.slice(0, length))) return length;
    return 0;
  });
  const part = Math.max(...lengths);
  return part === 0 ? text : `${whole.slice(0, -part)}***`;
}
