-- What administrators ask of a fleet. `nights` are the rows of a data set, `labels` is a table of
-- hosts with their rack and switch. Bandwidth is bytes / seconds, so times are compared.

-- 1. Which hosts are slow beside their class? The median of the last 30 days by host and path, over
-- the median of all hosts.
WITH own AS (
    SELECT class, host, name, bytes, median(CAST(seconds AS DOUBLE)) AS seconds
    FROM nights
    WHERE followed AND day > (SELECT CAST(CAST(max(day) AS DATE) - 30 AS VARCHAR) FROM nights)
    GROUP BY class, host, name, bytes),
usual AS (
    SELECT class, name, bytes, median(seconds) AS usual FROM own GROUP BY class, name, bytes)
SELECT host, name, bytes, usual / seconds AS ratio
FROM own JOIN usual USING (class, name, bytes)
WHERE usual / seconds < 0.97
ORDER BY ratio, host, name;

-- 2. Since when? The first night after the last one on which the path was within 3 % of its best
-- quarter.
WITH night AS (
    SELECT host, name, bytes, day, median(CAST(seconds AS DOUBLE)) AS seconds
    FROM nights WHERE followed GROUP BY host, name, bytes, day),
best AS (
    SELECT host, name, bytes, quantile_cont(seconds, 0.25) AS best
    FROM night GROUP BY host, name, bytes),
good AS (
    SELECT host, name, bytes, max(day) AS last_good
    FROM night JOIN best USING (host, name, bytes)
    WHERE seconds <= 1.03 * best GROUP BY host, name, bytes)
SELECT host, name, bytes, min(day) AS since, count(*) AS nights
FROM night JOIN good USING (host, name, bytes)
WHERE day > last_good
GROUP BY host, name, bytes HAVING count(*) >= 3
ORDER BY since, host, name;

-- 3. By rack or switch? The median bandwidth of each path by rack, over that of the class.
WITH own AS (
    SELECT class, rack, name, bytes, median(CAST(seconds AS DOUBLE)) AS seconds
    FROM nights JOIN labels USING (host)
    WHERE followed GROUP BY class, rack, name, bytes),
usual AS (
    SELECT class, name, bytes, median(CAST(seconds AS DOUBLE)) AS usual
    FROM nights WHERE followed GROUP BY class, name, bytes)
SELECT rack, name, bytes, usual / seconds AS ratio
FROM own JOIN usual USING (class, name, bytes)
ORDER BY ratio, rack, name;

-- 4. Before and after a driver? The bandwidth in GB/s of each path by the version of the driver.
SELECT class, name, bytes, driver, count(DISTINCT host) AS hosts,
    median(bytes / CAST(seconds AS DOUBLE) / 1e9) AS gb_per_second
FROM nights WHERE followed
GROUP BY class, name, bytes, driver
ORDER BY class, name, bytes, driver;

-- 5. What was not measured, and what has too few nights to be decided?
WITH last AS (SELECT host, max(measured) AS measured FROM nights GROUP BY host)
SELECT host, path, bytes, failure AS what, reason AS why
FROM nights JOIN last USING (host, measured)
WHERE processes = 0 AND failure <> ''
UNION ALL
SELECT host, path, bytes, 'too few nights' AS what, CAST(count(DISTINCT day) AS VARCHAR) AS why
FROM nights WHERE followed
GROUP BY host, path, bytes HAVING count(DISTINCT day) < 6
ORDER BY host, path, bytes, what;
