/** Writes several objects one after the other, and says what is written if a later one fails. */
import { messageOf, RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';

/** Rejects with the titles of the objects that are written if a later one fails. */
export async function writeInOrder<T>(
  all: readonly T[],
  titleOf: (each: T) => string,
  write: (each: T) => Promise<unknown>,
): Promise<void> {
  const written: string[] = [];
  for (const each of all) {
    try {
      await write(each);
    } catch (error) {
      if (written.length === 0) throw error;
      throw new RefitError(
        'REFIT_CONTROL',
        `${listed(written)} ${written.length === 1 ? 'is' : 'are'} written, and ${titleOf(each)} is not: ${messageOf(error)}`,
        { hint: 'see both with `refit status`, and run this again', cause: error },
      );
    }
    written.push(titleOf(each));
  }
}
