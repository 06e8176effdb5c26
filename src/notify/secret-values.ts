/** Reads the values that receivers have in Secrets. Its errors may be shown to users. */
import type { KubeClient } from '../kube/client.ts';
import { readSecret, SecretUnavailable } from '../kube/read-secret.ts';
import type { SecretRef } from './receivers.ts';

export interface SecretTools {
  readonly client: KubeClient;
  /** The namespace of the Secrets. */
  readonly namespace: string;
}

const LONGEST_SECRET = 4096;

/** The message of this error contains no secret, and may be shown. */
export class Undeliverable extends Error {
  override readonly name = 'Undeliverable';
}

export interface SecretValue {
  /** The bytes of one key of the Secret. At least one byte is not whitespace. */
  readonly value: Buffer;
  /** The name of the value in messages. */
  readonly title: string;
}

/** Reads the Secret in each attempt, so that a corrected Secret takes effect at once. */
export async function secretAt(
  { name, key }: SecretRef,
  tools: SecretTools,
  abort: AbortSignal,
): Promise<SecretValue> {
  const { secret, read } = await secretNamed(name, tools, abort);
  const value = read(key);
  if (textOf(value) === '') throw new Undeliverable(`${secret} has no key ${key}, or it is empty`);
  if (value.length > LONGEST_SECRET)
    throw new Undeliverable(`the key ${key} of ${secret} is longer than ${LONGEST_SECRET}`);
  return { value, title: `the key ${key} of ${secret}` };
}

export interface WholeSecret {
  /** The name of the Secret in messages. */
  readonly secret: string;
  /** Returns the value of a key; it is empty if the Secret lacks the key. */
  readonly read: (key: string) => Buffer;
}

export async function secretNamed(
  name: string,
  { client, namespace }: SecretTools,
  abort: AbortSignal,
): Promise<WholeSecret> {
  const secret = `Secret ${namespace}/${name}`;
  const read = await readSecret({ client, namespace, name }, abort).catch((error: unknown) => {
    // Any other error is an abort.
    throw new Undeliverable(
      error instanceof SecretUnavailable ? error.message : `${secret} cannot be read`,
    );
  });
  return { secret, read };
}

/** Returns the text without the newline that many tools write at its end. */
export function textOf(value: Buffer): string {
  return value.toString('utf8').trim();
}
