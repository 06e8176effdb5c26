/** Follows the first advice in the situations that `npm test` leaves out. */
import { testAdvice } from '../advice/followed.ts';
import { SECOND_TIER } from '../advice/paths.ts';

testAdvice(SECOND_TIER);
